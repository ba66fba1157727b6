import { expect, test, vi } from "vitest";
import { readFormFile } from "./multipart.ts";

const type = "multipart/form-data; boundary=b";
const read = (form: string, contentType = type) => {
  const { bytes, fileName } = readFormFile(Buffer.from(form), contentType);
  return [fileName, Buffer.from(bytes).toString()];
};
const file = (parameters: string, bytes = "bytes") =>
  `--b\r\nContent-Disposition: form-data; ${parameters}\r\n\r\n${bytes}\r\n--b--\r\n`;

test("reads what a client of the platform writes, byte for byte", async () => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 31) % 256);
  const form = new FormData();
  form.set("other", "value");
  form.set("file", new File([bytes], 'é "quoted"\\.txt'));
  form.set("last", "\r\n--\r\n");
  const sent = new Response(form);
  const contentType = sent.headers.get("content-type")!;
  const got = readFormFile(new Uint8Array(await sent.arrayBuffer()), contentType);
  expect(got.fileName).toBe('é "quoted"\\.txt');
  expect(Buffer.from(bytes).equals(got.bytes)).toBe(true);
});

test.each([
  ['name="file"; filename="x"', "x"],
  ["name=file; filename=x", "x"],
  ['filename="x"; name="file"', "x"],
  ['name="file"; filename="a\\"b\\\\c"', 'a"b\\c'],
  ['name="file"; filename="a%22b%0D%0A"', 'a"b\r\n'],
  ['NAME="file" ; FileName="x;y=z"', "x;y=z"],
  ['name="file"; filename=""', ""],
])("%s names the file", (parameters, fileName) => {
  expect(read(file(parameters))).toEqual([fileName, "bytes"]);
});

test("takes blanks, preambles, epilogues, empty parts and parts without headers", () => {
  const part = '--b  \t\r\ncontent-disposition:form-data; name="file"; filename="x"\r\n';
  expect(read(`before\r\n${part}\r\n--b--after`)).toEqual(["x", ""]);
  expect(read(`${part}\r\n\r\n--b--`)).toEqual(["x", ""]);
  expect(read(`--b\r\n\r\nno headers\r\n${part}\r\n1\r\n\r\n--b--`)).toEqual(["x", "1\r\n"]);
  expect(read(`${part}\r\none\r\n${part}\r\ntwo\r\n--b--`)).toEqual(["x", "one"]);
  expect(read(file('name="file"; filename="x"'), 'Multipart/Form-Data; charset=utf-8; boundary="b"')[1]).toBe("bytes");
});

test.each([
  ["no boundary", file('name="file"; filename="x"'), "multipart/form-data"],
  ["another type", file('name="file"; filename="x"'), "multipart/mixed; boundary=b"],
  ["another boundary", file('name="file"; filename="x"'), "multipart/form-data; boundary=c"],
  ["a boundary that is too long", file('name="file"; filename="x"'), `multipart/form-data; boundary=${"b".repeat(71)}`],
  ["nothing", "", type],
  ["no end", '--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\nbytes', type],
  ["headers without end", '--b\r\ncontent-disposition: form-data; name="file"; filename="x"', type],
  ["a line that only begins with the boundary", `--b\r\n\r\n\r\n--bb\r\n\r\n\r\n--b--`, type],
  ["a field that is no file", file('name="file"'), type],
  ["another name", file('name="other"; filename="x"'), type],
  ["another disposition", '--b\r\ncontent-disposition: attachment; name="file"; filename="x"\r\n\r\n\r\n--b--', type],
  [
    "an encoding",
    '--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\ncontent-transfer-encoding: base64\r\n\r\n\r\n--b--',
    type,
  ],
])("refuses a form with %s", (_what, form, contentType) => {
  expect(() => read(form, contentType)).toThrow(
    expect.objectContaining({ problem: expect.objectContaining({ status: 400 }) }),
  );
});

test("a form of many parts is given up after a few searches, however long it is", () => {
  const form = `${'--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\n\r\n'.repeat(50_000)}--b--`;
  const searches = vi.spyOn(Buffer.prototype, "indexOf");
  try {
    expect(() => read(form)).toThrow(/at most 16 parts/);
    expect(searches.mock.calls.length).toBeLessThan(40);
  } finally {
    searches.mockRestore();
  }
});

test("the headers of all parts together are bounded", () => {
  const part = (bytes: number) => `--b\r\nx-filler: ${"x".repeat(bytes)}\r\n\r\n\r\n`;
  const last = file('name="file"; filename="x"');
  expect(read(part(7_000) + part(7_000) + last)).toEqual(["x", "bytes"]);
  expect(() => read(part(7_000) + part(7_000) + part(7_000) + last)).toThrow(/at most 16384 bytes/);
  expect(() => read(part(1_000_000) + last)).toThrow(/at most 16384 bytes/);
});

test("without Node's buffers the same file is read", () => {
  const forms = [
    file('name="file"; filename="é"', "a\r\n-\r\n--\r\n--c\r\rb"),
    `before\r\n--b\r\n\r\nvalue\r\n${file('name="file"; filename="x"', "\r\r\n")}after`,
    "--b\r\nno end",
  ];
  const outcome = (form: Uint8Array) => {
    try {
      const { bytes, fileName } = readFormFile(form, type);
      return [fileName, ...bytes];
    } catch (error) {
      return String(error);
    }
  };
  const encoded = forms.map((form) => new TextEncoder().encode(form));
  const expected = encoded.map(outcome);
  vi.stubGlobal("Buffer", undefined);
  try {
    expect(encoded.map(outcome)).toEqual(expected);
  } finally {
    vi.unstubAllGlobals();
  }
  expect(expected.map((each) => each[0])).toEqual(["é", "x", "E"]);
});
