// Files that the tests make themselves.

import { crc32, deflateRawSync, deflateSync } from "node:zlib";

const text = (value: string) => new TextEncoder().encode(value);

/** A picture of one colour, in PNG. */
export function png(width = 8, height = 8, [r, g, b] = [30, 120, 60]): Uint8Array {
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([r!, g!, b!]))]);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const data = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)));
  return new Uint8Array(
    Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", head), chunk("IDAT", data), chunk("IEND")]),
  );
}

function chunk(name: string, data = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(name), data]);
  const frame = Buffer.alloc(8 + body.length);
  frame.writeUInt32BE(data.length, 0);
  body.copy(frame, 4);
  frame.writeUInt32BE(crc(body), 4 + body.length);
  return frame;
}

/** Node 20 has no crc32 of its own before 20.15. */
function crc(bytes: Uint8Array): number {
  if (typeof crc32 === "function") return crc32(bytes);
  let value = ~0;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return ~value >>> 0;
}

/** Bytes that begin as a PNG does and are as long as asked for; different for each seed. */
export function bigPng(size: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let i = 0, value = seed; i < size; i++) {
    value = (value * 1103515245 + 12345) & 0x7fffffff;
    bytes[i] = value >> 16;
  }
  bytes.set(png().subarray(0, 8));
  return bytes;
}

/** A PDF with one line of text on each page. */
export function pdf(...pages: string[]): Uint8Array {
  const objects: string[] = [];
  const add = (body: string) => objects.push(body);
  const kids = pages.map((_, i) => `${4 + i * 2} 0 R`).join(" ");
  add("<< /Type /Catalog /Pages 2 0 R >>");
  add(`<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`);
  add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
  pages.forEach((line, i) => {
    const stream = `BT /F1 12 Tf 20 100 Td (${line.replace(/[()\\]/g, "\\$&")}) Tj ET`;
    add(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Contents ${5 + i * 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
    );
    add(`<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`);
  });
  let body = "%PDF-1.4\n";
  const offsets = objects.map((object, i) => {
    const at = body.length;
    body += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const xref = body.length;
  const rows = offsets.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  body += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`;
  body += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${xref}\n%%EOF\n`;
  return text(body);
}

/** A tone, in WAV: 8,000 samples a second, 16 bits, one channel. */
export function wav(seconds = 0.05, hertz = 440): Uint8Array {
  const rate = 8000;
  const samples = Math.round(seconds * rate);
  const bytes = Buffer.alloc(44 + samples * 2);
  bytes.write("RIFF", 0);
  bytes.writeUInt32LE(36 + samples * 2, 4);
  bytes.write("WAVEfmt ", 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt32LE(rate * 2, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write("data", 36);
  bytes.writeUInt32LE(samples * 2, 40);
  for (let i = 0; i < samples; i++) {
    bytes.writeInt16LE(Math.round(12_000 * Math.sin((2 * Math.PI * hertz * i) / rate)), 44 + i * 2);
  }
  return new Uint8Array(bytes);
}

export const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
export const utf8 = text;

/** An archive. `claims` replaces the sizes that its directory names. */
export function zip(
  entries: Record<string, string | Uint8Array>,
  claims: { size?: number; copies?: number } = {},
): Uint8Array {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  const names = Object.keys(entries).flatMap((name) =>
    Array.from({ length: claims.copies ?? 1 }, (_, i) => [name, i] as const),
  );
  for (const [name, copy] of names) {
    const path = Buffer.from(copy === 0 ? name : `${copy}/${name}`);
    const data = Buffer.from(entries[name] as string);
    const packed = deflateRawSync(data);
    const size = claims.size ?? data.length;
    const head = Buffer.alloc(30);
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(8, 8);
    head.writeUInt32LE(packed.length, 18);
    head.writeUInt32LE(size, 22);
    head.writeUInt16LE(path.length, 26);
    const row = Buffer.alloc(46);
    row.writeUInt32LE(0x02014b50, 0);
    row.writeUInt16LE(8, 10);
    row.writeUInt32LE(packed.length, 20);
    row.writeUInt32LE(size, 24);
    row.writeUInt16LE(path.length, 28);
    row.writeUInt32LE(offset, 42);
    files.push(head, path, packed);
    directory.push(row, path);
    offset += head.length + path.length + packed.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(names.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(offset, 16);
  return new Uint8Array(Buffer.concat([...files, listed, end]));
}

const xml = (body: string) => `<?xml version="1.0"?>${body}`;

export function docx(...paragraphs: string[]): Uint8Array {
  const body = paragraphs.map((line) => `<w:p><w:r><w:t xml:space="preserve">${line}</w:t></w:r></w:p>`).join("");
  return zip({ "word/document.xml": xml(`<w:document><w:body>${body}</w:body></w:document>`) });
}

export function pptx(...slides: string[]): Uint8Array {
  const entries = slides.map((line, i) => [
    `ppt/slides/slide${i + 1}.xml`,
    xml(`<p:sld><a:p><a:r><a:t>${line}</a:t></a:r></a:p></p:sld>`),
  ]);
  return zip(Object.fromEntries(entries));
}

export function xlsx(rows: (string | number)[][]): Uint8Array {
  const texts = [...new Set(rows.flat().filter((cell) => typeof cell === "string"))];
  const cell = (value: string | number) =>
    typeof value === "string" ? `<c t="s"><v>${texts.indexOf(value)}</v></c>` : `<c><v>${value}</v></c>`;
  const body = rows.map((row) => `<row>${row.map(cell).join("")}</row>`).join("");
  return zip({
    "xl/workbook.xml": xml('<workbook><sheets><sheet name="Trees" sheetId="1"/></sheets></workbook>'),
    "xl/sharedStrings.xml": xml(`<sst>${texts.map((text) => `<si><t>${text}</t></si>`).join("")}</sst>`),
    "xl/worksheets/sheet1.xml": xml(`<worksheet><sheetData>${body}</sheetData></worksheet>`),
  });
}

export function odt(...paragraphs: string[]): Uint8Array {
  const body = paragraphs.map((line) => `<text:p>${line}</text:p>`).join("");
  return zip({
    "content.xml": xml(`<office:document-content><office:body>${body}</office:body></office:document-content>`),
  });
}
