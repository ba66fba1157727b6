// Long lists: only what is on the screen has elements. The one file that knows the library.

export { VList, type VListHandle } from "virtua";
