// Icons: strokes of 16 by 16, drawn with the colour of the text.

const paths = {
  copy: "M6 6h7v7H6zM3 10V3h7",
  edit: "M3 13l1-3 7-7 2 2-7 7zM10 4l2 2",
  again: "M13 8a5 5 0 1 1-2-4M13 2v3h-3",
  fork: "M4 2v12M4 9c0-4 7-2 7-7M11 2v0",
  link: "M7 9a3 3 0 0 0 4 0l2-2a3 3 0 0 0-4-4l-1 1M9 7a3 3 0 0 0-4 0L3 9a3 3 0 0 0 4 4l1-1",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  attach: "M12 7l-5 5a3 3 0 0 1-4-4l6-6a2 2 0 0 1 3 3l-6 6a1 1 0 0 1-1.500-1.500L10 5",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9M10.500 10.500L14 14",
  stop: "M4 4h8v8H4z",
  pin: "M8 10v4M5 2h6l-1 4 2 3H4l2-3z",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg className="bough" viewBox="0 0 18 18" width="18" height="18" aria-hidden="true">
      <path d="M5 17V1M5 12c0-4 8-2 8-7M5 15c0-3 6-1.5 6-4" />
    </svg>
  );
}
