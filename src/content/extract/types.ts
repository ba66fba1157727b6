const office = "application/vnd.openxmlformats-officedocument";

/** The types whose text has to be extracted. Apart from the code that does it, which only Node runs. */
export const documentTypes = {
  html: "text/html",
  xhtml: "application/xhtml+xml",
  pdf: "application/pdf",
  docx: `${office}.wordprocessingml.document`,
  pptx: `${office}.presentationml.presentation`,
  xlsx: `${office}.spreadsheetml.sheet`,
  odt: "application/vnd.oasis.opendocument.text",
} as const;

export type DocumentType = (typeof documentTypes)[keyof typeof documentTypes];

const all: ReadonlySet<string> = new Set(Object.values(documentTypes));

export function isDocumentType(mediaType: string): mediaType is DocumentType {
  return all.has(mediaType);
}
