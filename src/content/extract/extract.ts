// The text of a file, by its type. It runs in a worker (run.ts): it takes what time and memory it wants.

import { decodeText } from "../text.ts";
import { htmlText } from "./html.ts";
import { docxText, odtText, pptxText, xlsxText } from "./office.ts";
import { type DocumentType, documentTypes } from "./types.ts";

type Extract = (bytes: Uint8Array) => string | Promise<string>;

const byType: Readonly<Record<DocumentType, Extract>> = {
  [documentTypes.html]: (bytes) => htmlText(decodeText(bytes)),
  [documentTypes.xhtml]: (bytes) => htmlText(decodeText(bytes)),
  [documentTypes.pdf]: pdfText,
  [documentTypes.docx]: docxText,
  [documentTypes.pptx]: pptxText,
  [documentTypes.xlsx]: xlsxText,
  [documentTypes.odt]: odtText,
};

export async function extractText(bytes: Uint8Array, mediaType: DocumentType): Promise<string> {
  return byType[mediaType](bytes);
}

/** What is thrown when an optional package is not installed. */
export class MissingPackage extends Error {}

async function pdfText(bytes: Uint8Array): Promise<string> {
  const unpdf = await import("unpdf").catch((cause) => {
    throw new MissingPackage("Reading the text of PDF files needs the package unpdf: npm install unpdf", { cause });
  });
  const { text } = await unpdf.extractText(await unpdf.getDocumentProxy(bytes), { mergePages: false });
  const pages = text as string[];
  if (pages.length === 1) return pages[0]!.trim();
  return pages.map((page, i) => `Page ${i + 1}\n${page.trim()}`).join("\n\n");
}
