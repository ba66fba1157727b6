import { expect, test } from "vitest";
import { maskUrl, maskUrlsIn } from "./mask-url.ts";

test.each([
  ["postgres://ada:S3cretPw@localhost/app", "postgres://ada:***@localhost/app"],
  ["postgres://ada@localhost/app", "postgres://ada@localhost/app"],
  ["redis://:S3cretPw@cache:6379/0", "redis://:***@cache:6379/0"],
  ["postgres://ada:S3cr/et#P@w@localhost/app", "postgres://ada:***@localhost/app"],
  ["postgres://localhost/app?user=ada&password=S3cretPw", "postgres://localhost/app?user=ada&password=***"],
  ["postgres://h/app?sslpassword=S3cretPw&sslmode=require", "postgres://h/app?sslpassword=***&sslmode=require"],
  ["postgres://h/app?p%61ssword=S3cretPw", "postgres://h/app?p%61ssword=***"],
  ["https://h/?access_token=S3cretPw&key=S3cretPw", "https://h/?access_token=***&key=***"],
  ["http://127.0.0.1:4600/#token=S3cretPw", "http://127.0.0.1:4600/#…"],
  ["postgres://ada:S3cretPw@[broken/app", "postgres://…"],
  ["postgres://S3cretPw one:two/app", "postgres://…"],
  ["postgres:S3cretPw", "postgres:…"],
  ["S3cretPw", "…"],
])("%s is shown as %s", (url, shown) => {
  expect(maskUrl(url)).toBe(shown);
});

test("URLs in a text lose their secrets, and the rest of it stays", () => {
  const text = 'connect to "postgres://ada:S3c/ret@db/app?password=S3c" failed; see https://example.com/a?b=c.';
  expect(maskUrlsIn(text)).toBe(
    'connect to "postgres://ada:***@db/app?password=***" failed; see https://example.com/a?b=c.',
  );
});
