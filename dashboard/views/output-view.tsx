// The lines of an output, with colours and a search. At most some hundred lines are in the document.
import { signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { copyText } from '../data/copy-text.ts'
import { cutLine, findLines, type Line, type OutputLines } from '../data/output-lines.ts'
import { showHiddenInOutput } from '../data/visible-text.ts'
import { IconButton } from '../design/icon-button.tsx'
import { ChevronDownIcon, ChevronUpIcon, CopyIcon, FollowIcon, WrapIcon } from '../design/icons.ts'
import { SearchField } from './search-field.tsx'

const WINDOW_LINES = 500
/** A longer line is cut, so that it does not stop the browser. The download has all of it. */
const LINE_CHARACTERS = 4_000
/** The reader is at the end when less than this is below, in pixels. */
const END_PX = 24

/** For all outputs of this tab. */
const isWrapped = signal(true)

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
  const isAtEnd = useSignal(true)
  const copied = useSignal('')
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
    isAtEnd.value = false
    if (line < start || line >= start + WINDOW_LINES)
      first.value = firstNumber + Math.max(0, line - WINDOW_LINES / 2)
  }
  const step = (by: number) => showMatch((position + by + found.length) % found.length)
  const moveTo = (index: number) => {
    isAtEnd.value = false
    first.value = index >= lastStart ? null : firstNumber + Math.max(0, index)
  }

  async function copy(): Promise<void> {
    const text = lines.map(({ segments }) => segments.map((segment) => segment.text).join('')).join('\n')
    copied.value = (await copyText(text))
      ? 'Copied.'
      : 'The browser does not allow to copy here. Download the output.'
  }

  useLayoutEffect(() => {
    if (wanted.value !== '') showMatch(0)
  }, [wanted.value])
  useLayoutEffect(() => {
    if (pane.current !== null && isAtEnd.value) pane.current.scrollTop = pane.current.scrollHeight
  }, [version, start, isAtEnd.value])
  useLayoutEffect(() => {
    if (match !== undefined) pane.current?.querySelector('.current')?.scrollIntoView({ block: 'nearest' })
  }, [match, start])

  return (
    <>
      <form
        class="output-tools"
        onSubmit={(event) => {
          event.preventDefault()
          if (found.length > 0) step(1)
        }}
      >
        <SearchField label={`Search ${label}`} value={wanted} />
        {wanted.value !== '' && (
          <>
            <IconButton icon={ChevronUpIcon} label="Previous match" onClick={() => step(-1)} />
            <IconButton icon={ChevronDownIcon} label="Next match" onClick={() => step(1)} />
          </>
        )}
        <span role="status">
          {wanted.value !== '' &&
            (found.length === 0
              ? 'No line matches.'
              : `Match ${position + 1} of ${found.length}, line ${match?.number}`)}
          {copied.value}
        </span>
        <span class="tool-group">
          <IconButton
            icon={FollowIcon}
            label="Follow the end"
            isPressed={isAtEnd.value}
            onClick={() => {
              isAtEnd.value = true
              first.value = null
            }}
          />
          <IconButton
            icon={WrapIcon}
            label="Wrap long lines"
            isPressed={isWrapped.value}
            onClick={() => {
              isWrapped.value = !isWrapped.value
            }}
          />
          <IconButton icon={CopyIcon} label={`Copy ${label}`} onClick={() => void copy()} />
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
        class={isWrapped.value ? 'output' : 'output unwrapped'}
        role="log"
        aria-live="off"
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an area that scrolls must be reachable with the keyboard.
        tabIndex={0}
        hidden={lines.length === 0}
        onScroll={({ currentTarget }) => {
          const { scrollTop, clientHeight, scrollHeight } = currentTarget
          isAtEnd.value = first.value === null && scrollHeight - scrollTop - clientHeight < END_PX
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
export function LineRow({ line, length, isMatch }: { line: Line; length: number; isMatch: boolean }) {
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
