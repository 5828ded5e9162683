"""PDF documents, written by hand: one text a page."""

from __future__ import annotations

from collections.abc import Sequence


def pdf(texts: Sequence[str], info: str = "", *, trailer: str = "") -> bytes:
    """A document whose pages say these texts."""
    return pdf_of([f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode("latin-1") for text in texts], info, trailer=trailer)


def pdf_of(streams: Sequence[bytes], info: str = "", *, filters: str = "", trailer: str = "") -> bytes:
    """A document whose pages have these streams of drawing commands."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, stream in enumerate(streams):
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] {resources} /Contents {5 + 2 * n} 0 R >>".encode()
        )
        objects.append(f"<< /Length {len(stream)} {filters} >>\nstream\n".encode() + stream + b"\nendstream")
    objects.append(f"<< {info} >>".encode("latin-1"))
    return _written(objects, trailer)


def encrypted_pdf() -> bytes:
    """A document that opens only with a password; its keys fit none."""
    keys = f"/O <{'41' * 32}> /U <{'42' * 32}>"
    return pdf(["secret"], trailer=f"/Encrypt << /Filter /Standard /V 1 /R 2 {keys} /P -4 >> /ID [<00> <00>]")


def _written(objects: Sequence[bytes], trailer: str) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"trailer << /Size {size} /Root 1 0 R /Info {len(objects)} 0 R {trailer} >>\nstartxref\n{len(out)}\n%%EOF"
    return out + f"xref\n0 {size}\n0000000000 65535 f \n{table}{end}".encode()
