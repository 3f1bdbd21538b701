"""The boot units as text. Pure.

    bawn-wall.service          loads both tables before there is a network, and so before docker
    bawn-wall-docker.service   puts the second layer in docker's chain each time that docker has started

The first needs nothing but nft and a file. It comes after those who flush all rules when they start
(Debian's nftables.conf does), and nothing takes the wall away when it is stopped.
"""

DIRECTORY = "/etc/systemd/system"
TABLES, LAYER = "bawn-wall.service", "bawn-wall-docker.service"
_OTHERS = "nftables.service iptables.service ip6tables.service netfilter-persistent.service firewalld.service"


def units(nft: str, rules: str, bawn: str) -> dict[str, str]:
    """Name -> text. `nft` and `bawn` are programs, `rules` the file of the tables."""
    return {
        TABLES: f"""\
# Written by `bawn wall apply --boot`; removed by `bawn wall remove`.
[Unit]
Description=bawn's wall: what boxes in bridge mode may reach
DefaultDependencies=no
Wants=network-pre.target
After=local-fs.target {_OTHERS} ufw.service
Before=network-pre.target docker.service shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={nft} -f {rules}

[Install]
WantedBy=multi-user.target
""",
        LAYER: f"""\
# Written by `bawn wall apply --boot`; removed by `bawn wall remove`.
[Unit]
Description=bawn's wall: the second layer, in docker's own chain
Requires={TABLES}
After={TABLES} docker.service
PartOf=docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={bawn} wall apply --recorded

[Install]
WantedBy=docker.service
""",
    }
