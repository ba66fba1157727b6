// The time strip: every fact is a tick, and a slider goes to any of them. The conversation above is folded anew for each position.

import { useCallback, useEffect, useRef, useState } from "react";
import type { BranchLog } from "../data/branch-log.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { clockTime } from "../ui/time.ts";

interface TimeStripProps {
  readonly log: BranchLog;
  readonly version: number;
  /** The position that is shown; undefined for now. */
  readonly at: number | undefined;
  readonly onGo: (seq: number | undefined) => void;
}

const speeds = [1, 4, 16] as const;
/** Pauses between facts are cut to this when they are played. */
const longestPauseMs = 1000;

export function TimeStrip({ log, version, at, onGo }: TimeStripProps) {
  const { length } = log;
  const seq = Math.min(at ?? length, length);
  const goTo = useCallback((to: number) => onGo(to >= log.length ? undefined : Math.max(1, to)), [log, onGo]);
  const { speed, play, pause } = usePlayer(log, at, goTo);
  const fact = log.facts[seq - 1];
  const words = fact ? `${seq} of ${length}, ${fact.type}` : "no facts yet";
  return (
    <section className="time" aria-label="Time">
      <span className="label">Time</span>
      <IconButton icon="left" label="One fact back" disabled={seq <= 1} onClick={() => goTo(seq - 1)} />
      <div className="track">
        <Ticks log={log} version={version} />
        <input
          id="time"
          type="range"
          aria-label="Position in the log"
          aria-valuetext={words}
          min={1}
          max={Math.max(1, length)}
          value={Math.max(1, seq)}
          onChange={(event) => goTo(Number(event.target.value))}
          onKeyDown={(event) => {
            const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
            if (by === 0 || !event.shiftKey) return;
            event.preventDefault();
            goTo(seq + 10 * by);
          }}
        />
      </div>
      <IconButton icon="right" label="One fact on" disabled={at === undefined} onClick={() => goTo(seq + 1)} />
      {speed === undefined ? (
        speeds.map((each) => (
          <Button key={each} kind="plain" title={`Play at ${each} times the speed`} onClick={() => play(each)}>
            {each}×
          </Button>
        ))
      ) : (
        <IconButton icon="pause" label="Pause" onClick={pause} />
      )}
      <span className="number" title={fact && new Date(fact.at).toLocaleString()}>
        {at === undefined ? "now · " : fact ? `${clockTime(fact.at, { seconds: true })} · ` : ""}
        {seq}/{length}
      </span>
    </section>
  );
}

/** Plays the log with the pauses that it had, shortened. */
function usePlayer(log: BranchLog, at: number | undefined, goTo: (seq: number) => void) {
  const [speed, setSpeed] = useState<number>();
  const pause = useCallback(() => setSpeed(undefined), []);
  const play = useCallback(
    (each: number) => {
      setSpeed(each);
      if (at === undefined) goTo(1);
    },
    [at, goTo],
  );
  useEffect(() => {
    if (speed === undefined) return;
    if (at === undefined) {
      // What plays to the end stops there; from now it begins at the first fact.
      const timer = setTimeout(() => setSpeed(undefined), longestPauseMs);
      return () => clearTimeout(timer);
    }
    const gap = (log.facts[at]?.at ?? 0) - (log.facts[at - 1]?.at ?? 0);
    const timer = setTimeout(() => goTo(at + 1), Math.max(16, Math.min(longestPauseMs, gap) / speed));
    return () => clearTimeout(timer);
  }, [speed, at, log, goTo]);
  return { speed, play, pause };
}

const colours = ["leaf", "amber", "brick", "sky", "faint", "soft"] as const;

function colourOf(type: string): (typeof colours)[number] {
  if (type === "turn.ended") return "brick";
  if (type.startsWith("turn.")) return "leaf";
  if (type.startsWith("interaction.")) return "amber";
  if (type.startsWith("branch.") || type.startsWith("history.")) return "sky";
  return type.startsWith("tool.") ? "faint" : "soft";
}

const tall = /^(turn\.started|branch\.|interaction\.opened|history\.)/;

function Ticks({ log, version }: { log: BranchLog; version: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, scheme: "" });
  useEffect(() => {
    const element = canvas.current!;
    const measure = () =>
      setSize({ width: element.clientWidth, scheme: getComputedStyle(element).getPropertyValue("color-scheme") });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => setSize((before) => ({ ...before, scheme: String(Math.random()) }));
    dark.addEventListener("change", repaint);
    addEventListener("bough-theme", repaint);
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", repaint);
      removeEventListener("bough-theme", repaint);
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: drawn again when the log has grown
  useEffect(() => {
    const element = canvas.current!;
    const context = element.getContext("2d");
    if (!context || size.width === 0) return;
    const ratio = devicePixelRatio;
    element.width = size.width * ratio;
    element.height = 28 * ratio;
    const style = getComputedStyle(element);
    const paints = new Map(colours.map((name) => [name, resolved(style.getPropertyValue(`--${name}`), element)]));
    const step = (size.width - 2) / Math.max(1, log.length - 1);
    let drawnAt = -1;
    for (const { seq, type } of log.facts) {
      const x = Math.round((seq - 1) * step);
      const isTall = tall.test(type);
      // Thousands of facts share a pixel: one short tick is enough for it.
      if (!isTall && x === drawnAt) continue;
      drawnAt = x;
      context.fillStyle = paints.get(colourOf(type))!;
      context.globalAlpha = isTall ? 1 : 0.45;
      context.fillRect(x * ratio, (isTall ? 3 : 18) * ratio, ratio, (isTall ? 22 : 7) * ratio);
    }
  }, [log, version, size]);
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus
  return <canvas ref={canvas} className="ticks" aria-hidden="true" />;
}

/** A canvas knows no `light-dark()`: the element resolves it. */
function resolved(value: string, element: HTMLElement): string {
  element.style.color = value;
  const colour = getComputedStyle(element).color;
  element.style.color = "";
  return colour;
}
