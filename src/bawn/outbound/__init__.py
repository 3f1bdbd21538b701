"""The outbound file guard, decided: which paths a reply names, and which files may leave. Pure.

    text of a reply      --extract-->     Candidates, each with what it may mean
    structured data      --structured-->  texts and lists of files --extract--> Candidates
    a candidate's path   --locate-->      the root it lies in, or a denial
    the object's path    --decide-->      hidden by a pattern, a mask or a refused place, or not
    bytes of a gateway   --http-->        requests (`bawn outbound serve`)

`rules` is the table of outcomes. Nothing here looks at a file: `bawn.effects.outbound` opens what
was located, asks `decide` about the object that it got, and hands over the descriptor.
"""
