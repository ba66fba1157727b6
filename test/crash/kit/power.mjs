// Power cuts: a file system in a file, whose power is cut by FS_IOC_SHUTDOWN. Whatever was not synced by then is gone, as
// it would be with the machine's; what was is found after the next mount. Needs root, loop devices and a helper that can
// send the ioctl.

import { execFile, execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const mostTries = 200;
const imageBytes = 256 * 1024 * 1024;

// FS_IOC_SHUTDOWN with NOLOGFLUSH: nothing more reaches the disk, the journal's newest part neither.
const helpers = [
  ["perl", "-e", 'sysopen(F, $ARGV[0], 0) or die $!; my $how = pack("L", 2); ioctl(F, 0x8004587d, $how) or die $!;'],
  [
    "python3",
    "-c",
    "import fcntl,os,struct,sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))",
  ],
];

export class PowerSocket {
  mayFail = true;
  env = {};
  writersAtOnce = () => 1;
  #folder;
  #mountPoint;
  #helper;
  #stores = 0;
  #isMounted = false;

  /** Makes and mounts the file system; throws, with nothing left behind, where that can't be done. */
  constructor() {
    this.#helper = helpers.find(([command]) => canRun(command));
    if (!this.#helper) throw new Error("neither perl nor python3 is there to send the ioctl");
    if (process.getuid?.() !== 0) throw new Error("mounting a file system needs root");
    this.#folder = mkdtempSync(join(tmpdir(), "bough-power-"));
    this.#mountPoint = join(this.#folder, "mount");
    try {
      mkdirSync(this.#mountPoint);
      makeImage(this.#image);
      this.#mount();
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  makeFolder = () => {
    const folder = join(this.#mountPoint, `store${++this.#stores}`);
    mkdirSync(folder);
    // The folder itself is not what is tested.
    execFileSync("sync", ["-f", this.#mountPoint]);
    return folder;
  };

  /**
   * Cuts the power under the process, then ends it. The process stands still first: a sync that is under way in the
   * moment of the ioctl may report success although its data is gone, which no disk does.
   */
  strike = async (child) => {
    child.kill("SIGSTOP");
    while (!standsStill(child.pid)) await new Promise((resolve) => setTimeout(resolve, 1));
    const [command, ...args] = this.#helper;
    await run(command, [...args, this.#mountPoint]);
    child.kill("SIGKILL");
  };

  /** Power is back: the file system is mounted anew from what is on its disk. */
  recover = async () => {
    // The kernel may still be letting go of what the dead process had open.
    for (let tries = 1; !this.#unmounted(); tries++) {
      if (tries === mostTries) throw new Error(`${this.#mountPoint} stays busy`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    this.#mount();
  };

  dispose() {
    // Lazily: whoever still has a file open there is about to die as well.
    if (this.#isMounted) execFileSync("umount", ["-l", this.#mountPoint], { stdio: "pipe" });
    this.#isMounted = false;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #image() {
    return join(this.#folder, "disk.img");
  }

  #mount() {
    execFileSync("mount", ["-o", "loop", this.#image, this.#mountPoint], { stdio: "pipe" });
    this.#isMounted = true;
  }

  #unmounted() {
    try {
      execFileSync("umount", [this.#mountPoint], { stdio: "pipe" });
      this.#isMounted = false;
    } catch (error) {
      if (!/busy/.test(error.stderr)) throw error;
    }
    return !this.#isMounted;
  }
}

/** Whether every thread of the process is stopped, or gone. */
function standsStill(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/stat`, "utf8"));
    return threads.every((stat) => /[TtZX]/.test(stat.slice(stat.lastIndexOf(")") + 2)[0]));
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return !existsSync(`/proc/${pid}`);
    throw error;
  }
}

function makeImage(path) {
  const file = openSync(path, "w");
  ftruncateSync(file, imageBytes);
  closeSync(file);
  execFileSync("mkfs.ext4", ["-q", "-F", path], { stdio: "pipe" });
}

function canRun(command) {
  try {
    execFileSync(command, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
