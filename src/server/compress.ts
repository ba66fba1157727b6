// Compression of JSON answers. Streams, downloads, problem documents and assets are sent as they are (SECURITY.md).

/** Below it, compression costs more than it saves. */
const leastCharacters = 4096;

/** Long texts of answers that may be compressed. */
const texts = new WeakMap<Response, string>();

/** A JSON answer that is compressed for clients that take it so, if it is long. */
export function jsonResponse(text: string, status = 200): Response {
  const response = new Response(text, { status, headers: { "content-type": "application/json" } });
  if (text.length >= leastCharacters) texts.set(response, text);
  return response;
}

/** The same answer, compressed if it is a long one of `jsonResponse` and the request takes gzip. */
export function compressed(response: Response, request: Request): Response {
  const text = texts.get(response);
  if (text === undefined) return response;
  response.headers.append("vary", "accept-encoding");
  if (!takesGzip(request.headers.get("accept-encoding"))) return response;
  const body = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  const headers = new Headers(response.headers);
  headers.set("content-encoding", "gzip");
  return new Response(body, { status: response.status, headers });
}

/** Whether gzip is named, and not with a weight of 0. */
function takesGzip(accepted: string | null): boolean {
  return (accepted ?? "").split(",").some((each) => {
    const [coding = "", ...parameters] = each.split(";").map((part) => part.trim().toLowerCase());
    return coding === "gzip" && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
