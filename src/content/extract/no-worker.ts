// Where there are no threads, only texts that stand in a file as they are can be read.
export {};
