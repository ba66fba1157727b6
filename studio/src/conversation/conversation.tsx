// The conversation: a virtual list of rows that follows its end while somebody reads there, and stays put while they read above.

import { memo, useEffect, useLayoutEffect, useRef } from "react";
import { VList, type VListHandle } from "../ui/virtual.tsx";
import { RowView } from "./message.tsx";
import type { Row } from "./rows.ts";

const nearEnd = 40;

interface ConversationProps {
  readonly rows: readonly Row[];
  /** The turn that is open at the position that is shown. */
  readonly openTurnId: string | undefined;
  readonly marked: string | undefined;
  readonly isPast: boolean;
}

export const Conversation = memo(function Conversation({ rows, openTurnId, marked, isPast }: ConversationProps) {
  const list = useRef<VListHandle>(null);
  const isPinned = useRef(true);
  const markedIndex = marked === undefined ? -1 : rows.findIndex(({ key }) => key === marked);
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the rows may move the end
  useLayoutEffect(() => {
    if ((isPinned.current || isPast) && markedIndex < 0 && rows.length > 0) {
      list.current?.scrollToIndex(rows.length - 1, { align: "end" });
    }
  }, [rows, isPast]);
  useEffect(() => {
    if (markedIndex < 0) return;
    isPinned.current = false;
    list.current?.scrollToIndex(markedIndex, { align: "center" });
  }, [markedIndex]);
  const onScroll = (offset: number) => {
    const { scrollSize, viewportSize } = list.current ?? { scrollSize: 0, viewportSize: 0 };
    isPinned.current = scrollSize - offset - viewportSize < nearEnd;
  };
  if (rows.length === 0) return <p className="empty">Nothing was said yet.</p>;
  return (
    <VList ref={list} className="conversation" data={rows} bufferSize={400} onScroll={onScroll}>
      {(row, i) => (
        <RowView
          key={row.key}
          row={row}
          isFirst={i === 0}
          isLast={i === rows.length - 1}
          isMarked={row.key === marked}
          isOpenTurn={row.kind === "message" && row.message.turnId === openTurnId}
        />
      )}
    </VList>
  );
});
