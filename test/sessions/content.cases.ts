import { describe, expect } from "vitest";
import { type Case, main, on, refused, talk } from "./kit.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

export function contentCases(test: Case): void {
  describe("content", () => {
    test("is a reference that stays the same for the same bytes", async ({ sessions, clock }) => {
      await sessions.createSession("s");
      const put = await sessions.putContent(main, { bytes: bytes("hello"), mediaType: "text/plain", name: "hi.txt" });
      const sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
      expect(put).toEqual({
        id: sha,
        uri: `bough-content://sha256/${sha}`,
        size: 5,
        mediaType: "text/plain",
        name: "hi.txt",
        createdAt: clock.now(),
        branchId: "main",
        seq: expect.any(Number),
      });
      clock.advance(1);
      expect(await sessions.putContent(main, { bytes: bytes("hello") })).toEqual(put);
      expect(await sessions.putContent(main, { bytes: new Uint8Array() })).toMatchObject({
        size: 0,
        mediaType: "application/octet-stream",
      });
      for (const name of [put.id, put.uri]) {
        expect(new TextDecoder().decode(await (await sessions.getContent(main, name)).bytes())).toBe("hello");
      }
      const given = bytes("before");
      const putting = sessions.putContent(main, { bytes: given });
      given.fill(0);
      expect(new TextDecoder().decode(await (await sessions.getContent(main, (await putting).id)).bytes())).toBe(
        "before",
      );
      for (const wrong of ["text", [1], new ArrayBuffer(1), new Uint16Array(1), undefined] as never[]) {
        await refused(sessions.putContent(main, { bytes: wrong }), "invalid_argument");
        await refused(sessions.putContent(main, { blob: wrong }), "invalid_argument");
        await refused(sessions.putContent(main, { stream: wrong }), "invalid_argument");
      }
      for (const said of [{ name: 5 }, { name: null }, { mediaType: null }] as object[]) {
        await refused(sessions.putContent(main, { bytes: bytes("said"), ...said }), "invalid_argument");
      }
      const long = { bytes: bytes("said"), name: "x".repeat(70_000) };
      await refused(sessions.putContent(main, long), "limit_exceeded");
      for (const wrong of ["", "zz", `bough-content://md5/${sha}`, `${sha}0`, "../../etc/passwd"]) {
        await refused(sessions.getContent(main, wrong), "invalid_argument");
      }
    });

    test("is seen along the ancestry: by descendants, not by ancestors or siblings", async ({ sessions }) => {
      await sessions.createSession("s");
      const own = await sessions.putContent(main, { bytes: bytes("main's") });
      await talk(sessions, main, 1);
      await sessions.forkBranch(main, { newBranchId: "f" });
      await sessions.forkBranch(on("f"), { newBranchId: "ff" });
      await sessions.forkBranch(main, { newBranchId: "g" });
      const later = [{ role: "user" as const, content: "later" }];
      await sessions.appendTurn(main, later);
      await sessions.appendTurn(on("f"), later);
      const late = await sessions.putContent(main, { bytes: bytes("too late for the forks") });
      const forks = await sessions.putContent(on("f"), { bytes: bytes("f's") });
      const seen = async (id: string) =>
        (await sessions.listContent(on(id))).map(({ branchId }) => branchId).toSorted();
      expect(await Promise.all(["main", "f", "ff", "g"].map(seen))).toEqual([
        ["main", "main"],
        ["f", "main"],
        ["main"],
        ["main"],
      ]);
      await refused(sessions.getContent(on("f"), late.uri), "content_not_found");
      await sessions.forkBranch(on("f"), { newBranchId: "ff2" });
      expect(await seen("ff2")).toEqual(["f", "main"]);
      expect((await sessions.getContent(on("ff2"), forks.uri)).content.branchId).toBe("f");
      await refused(sessions.getContent(on("g"), forks.uri), "content_not_found", { ...on("g"), contentId: forks.id });
      await refused(sessions.getContent(main, forks.uri), "content_not_found");
      expect(await sessions.deleteContent(on("ff"), forks.uri)).toBe(false);
      expect(await sessions.deleteContent(on("f"), forks.uri)).toBe(true);
      await refused(sessions.getContent(on("ff2"), forks.uri), "content_not_found");
      expect(await (await sessions.getContent(on("ff"), own.uri)).bytes()).toEqual(bytes("main's"));
    });

    test("stays as long as a branch refers to it", async ({ sessions }) => {
      await sessions.createSession("s");
      await sessions.createBranch("s", { branchId: "b" });
      const { uri } = await sessions.putContent(main, { bytes: bytes("shared") });
      await sessions.putContent(on("b"), { bytes: bytes("shared") });
      await sessions.deleteContent(main, uri);
      expect(await (await sessions.getContent(on("b"), uri)).bytes()).toEqual(bytes("shared"));
      await sessions.deleteBranch({ sessionId: "s", branchId: "b" });
      await refused(sessions.getContent(main, uri), "content_not_found");
    });

    test("is not changed by what the caller does to the bytes afterwards", async ({ sessions }) => {
      await sessions.createSession("s");
      const mine = bytes("hello");
      const { uri } = await sessions.putContent(main, { bytes: mine });
      mine.fill(0);
      const first = await sessions.getContent(main, uri);
      (await first.bytes()).fill(0);
      expect(await (await sessions.getContent(main, uri)).bytes()).toEqual(bytes("hello"));
    });
  });
}
