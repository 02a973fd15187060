// The lines of an output, with colours and a search. At most some hundred lines are in the document.
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { cutLine, findLines, type Line, type OutputLines } from '../data/output-lines.ts'
import { showHiddenInOutput } from '../data/visible-text.ts'
import { SearchField } from './search-field.tsx'

const WINDOW_LINES = 500
/** A longer line is cut, so that it does not stop the browser. The download has all of it. */
const LINE_CHARACTERS = 4_000
/** The reader is at the end when less than this is below, in pixels. */
const END_PX = 24

export type OutputViewProps = {
  label: string
  output: OutputLines
  /** Changes with the output. */
  version: number
  isRunning: boolean
}

export function OutputView({ label, output, version, isRunning }: OutputViewProps) {
  const wanted = useSignal('')
  /** The number of the current match among the matches. */
  const current = useSignal(0)
  /** The number of the first line of the window. Null: the window is at the end. */
  const first = useSignal<number | null>(null)
  const pane = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const { lines } = output
  const found = useMemo(() => findLines(lines, wanted.value), [version, lines, wanted.value])
  const position = Math.min(current.value, Math.max(0, found.length - 1))
  const match = found.length === 0 ? undefined : lines[found[position] ?? 0]

  const firstNumber = lines[0]?.number ?? 1
  const lastStart = Math.max(0, lines.length - WINDOW_LINES)
  const start = first.value === null ? lastStart : Math.min(lastStart, Math.max(0, first.value - firstNumber))
  const shown = lines.slice(start, start + WINDOW_LINES)

  function showMatch(index: number): void {
    current.value = index
    const line = found[index]
    if (line === undefined) return
    isAtEnd.current = false
    if (line < start || line >= start + WINDOW_LINES)
      first.value = firstNumber + Math.max(0, line - WINDOW_LINES / 2)
  }
  const step = (by: number) => showMatch((position + by + found.length) % found.length)
  const moveTo = (index: number) => {
    isAtEnd.current = false
    first.value = index >= lastStart ? null : firstNumber + Math.max(0, index)
  }

  useLayoutEffect(() => showMatch(0), [wanted.value])
  useLayoutEffect(() => {
    if (pane.current !== null && isAtEnd.current) pane.current.scrollTop = pane.current.scrollHeight
  }, [version, start])
  useLayoutEffect(() => {
    if (match !== undefined) pane.current?.querySelector('.current')?.scrollIntoView({ block: 'nearest' })
  }, [match, start])

  return (
    <>
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault()
          if (found.length > 0) step(1)
        }}
      >
        <SearchField label={`Search ${label}`} value={wanted} />
        <button type="button" disabled={found.length === 0} onClick={() => step(-1)}>
          Previous
        </button>
        <button type="submit" disabled={found.length === 0}>
          Next
        </button>
        <span role="status">
          {wanted.value !== '' &&
            (found.length === 0
              ? 'No line matches.'
              : `Match ${position + 1} of ${found.length}, line ${match?.number}`)}
        </span>
      </form>
      {lines.length === 0 && <p>{isRunning ? 'There is no output yet.' : 'There is no output.'}</p>}
      {start > 0 && (
        <button type="button" onClick={() => moveTo(start - WINDOW_LINES)}>
          Show earlier lines ({start})
        </button>
      )}
      <div
        ref={pane}
        class="output"
        role="log"
        aria-live="off"
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an area that scrolls must be reachable with the keyboard.
        tabIndex={0}
        hidden={lines.length === 0}
        onScroll={({ currentTarget }) => {
          const { scrollTop, clientHeight, scrollHeight } = currentTarget
          isAtEnd.current = first.value === null && scrollHeight - scrollTop - clientHeight < END_PX
        }}
      >
        {shown.map((line) => (
          <LineRow
            key={line.number}
            line={line}
            length={line.length}
            isMatch={match !== undefined && line === match}
          />
        ))}
      </div>
      {start < lastStart && (
        <button type="button" onClick={() => moveTo(start + WINDOW_LINES)}>
          Show later lines ({lines.length - start - shown.length})
        </button>
      )}
    </>
  )
}

/** @param props.length a line changes only by getting longer or by losing its start */
function LineRow({ line, length, isMatch }: { line: Line; length: number; isMatch: boolean }) {
  return useMemo(
    () => (
      <div class={isMatch ? 'line current' : 'line'}>
        {cutLine(line, LINE_CHARACTERS).map((segment) =>
          segment.class === '' ? (
            showHiddenInOutput(segment.text)
          ) : (
            <span class={segment.class}>{showHiddenInOutput(segment.text)}</span>
          ),
        )}
        {length > LINE_CHARACTERS && (
          <em> … {length - LINE_CHARACTERS} more characters in this line; download the output to see them</em>
        )}
      </div>
    ),
    [line, length, isMatch],
  )
}
