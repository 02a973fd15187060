// One terminal session with its actions. It is in a file of its own, because the emulator is large.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { TerminalState } from '../api/terminal-connection.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { setTerminalFontSize, terminalFontSize } from '../data/preferences.ts'
import { formatBoxPath } from '../data/routes.ts'
import { formatSessionPath, listSessions, openNewSession } from '../data/terminal-sessions.ts'
import { countLines, formatExit, hasSeveralLines, isEnded, parseWebLink } from '../data/terminal-text.ts'
import { showHidden, showHiddenInOutput } from '../data/visible-text.ts'
import { Icon } from '../design/icon.tsx'
import { IconButton } from '../design/icon-button.tsx'
import { LargerIcon, MaximizeIcon, PlusIcon, SmallerIcon, TerminalIcon } from '../design/icons.ts'
import { Commands } from './command.tsx'
import { EndSession } from './end-session.tsx'
import { useLoaded } from './loaded.tsx'
import { Problem } from './problem.tsx'
import { Question } from './question.tsx'
import { useAction } from './use-action.ts'
import { type TerminalHook, useTerminal } from './use-terminal.ts'
import type { ScreenKey } from './xterm.ts'

const PREVIEW_CHARACTERS = 2_000
const POLL_MS = 10_000

export function TerminalView({ box, session }: { box: Box; session: string }) {
  const { hostname } = box
  const leave = useRef<HTMLAnchorElement>(null)
  const isFull = useSignal(false)
  const pasted = useSignal<string | null>(null)
  const link = useSignal<string | null>(null)
  const terminal = useTerminal({
    box,
    session,
    onPaste(text) {
      if (hasSeveralLines(text)) pasted.value = text
      else terminal.paste(text)
    },
    onLink(uri) {
      link.value = uri
    },
    onLeave: () => leave.current?.focus(),
  })
  const { element, state, focus } = terminal
  const closePaste = () => {
    pasted.value = null
    focus()
  }
  const closeLink = () => {
    link.value = null
    focus()
  }
  return (
    <div class={isFull.value ? 'terminal full' : 'terminal'}>
      <SessionTabs box={box} current={session} />
      <div class="terminal-tools">
        <span role="status" class={`terminal-state ${state.type}`}>
          {showHidden(formatState(state))}
        </span>
        {state.type === 'failed' && (
          <button type="button" onClick={terminal.attachAgain}>
            Attach again
          </button>
        )}
        <div class="actions">
          <a ref={leave} class="button" href={formatBoxPath(hostname, 'terminals')}>
            Detach
          </a>
          <IconButton
            icon={SmallerIcon}
            label="Smaller text"
            onClick={() => setTerminalFontSize(terminalFontSize.value - 1)}
          />
          <IconButton
            icon={LargerIcon}
            label="Larger text"
            onClick={() => setTerminalFontSize(terminalFontSize.value + 1)}
          />
          <IconButton
            icon={MaximizeIcon}
            label="Full screen"
            isPressed={isFull.value}
            onClick={() => {
              isFull.value = !isFull.value
              focus()
            }}
          />
          <Commands texts={[formatCommandLine('box', 'attach', hostname, session)]} />
          {!isEnded(state) && <EndSession box={box} session={session} onEnd={focus} />}
        </div>
      </div>
      <Problem error={getError(state)} />
      <div ref={element} class="screen" />
      <ScreenKeys terminal={terminal} />
      <p class="terminal-hint">
        <small>
          Ctrl-Shift-C copies, Ctrl-Shift-V pastes, Ctrl-Shift-L leaves the terminal. Others who may use this
          box open the address of this page to share the session.
        </small>
      </p>
      {pasted.value !== null && (
        <PasteQuestion text={pasted.value} onPaste={terminal.paste} onClose={closePaste} />
      )}
      {link.value !== null && <LinkQuestion link={link.value} onClose={closeLink} />}
    </div>
  )
}

/** The sessions of the box, one click apart. */
function SessionTabs({ box, current }: { box: Box; current: string }) {
  const { id, hostname } = box
  const isRunning = box.observedState === 'running'
  const { value } = useLoaded(
    async () => (isRunning ? listSessions(id) : []),
    [id, current, isRunning],
    isRunning ? POLL_MS : undefined,
  )
  const { error, run } = useAction()
  // The box lists those with the last output first: tabs that change their order are missed.
  const names = (value ?? [])
    .toSorted((a, b) => (a.startedAt < b.startedAt ? -1 : 1))
    .map(({ session }) => session)
  return (
    <>
      <nav class="session-tabs" aria-label="Sessions">
        {(names.includes(current) ? names : [...names, current]).map((name) => (
          <a
            key={name}
            href={formatSessionPath(hostname, name)}
            aria-current={name === current ? 'page' : undefined}
          >
            <Icon of={TerminalIcon} />
            {showHidden(name)}
          </a>
        ))}
        <IconButton
          icon={PlusIcon}
          label="Start another session"
          onClick={() => void run(() => openNewSession(box, {}))}
        />
      </nav>
      <Problem error={error.value} />
    </>
  )
}

const SCREEN_KEYS: Record<ScreenKey, string> = {
  Escape: 'Esc',
  Tab: 'Tab',
  Left: '←',
  Up: '↑',
  Down: '↓',
  Right: '→',
}

/** Keys that the keyboard of a phone does not have. Shown where the pointer is a finger. */
function ScreenKeys({ terminal }: { terminal: TerminalHook }) {
  const { hasCtrl, press, focus } = terminal
  // A press does not take the focus, so that the keyboard of the device stays open.
  const keepFocus = (event: PointerEvent) => event.preventDefault()
  return (
    <div class="screen-keys">
      <button
        type="button"
        aria-pressed={hasCtrl.value}
        onPointerDown={keepFocus}
        onClick={() => {
          hasCtrl.value = !hasCtrl.value
          focus()
        }}
      >
        Ctrl
      </button>
      {(Object.keys(SCREEN_KEYS) as ScreenKey[]).map((key) => (
        <button
          key={key}
          type="button"
          aria-label={key}
          onPointerDown={keepFocus}
          onClick={() => {
            press(key)
            focus()
          }}
        >
          {SCREEN_KEYS[key]}
        </button>
      ))}
    </div>
  )
}

type PasteQuestionProps = { text: string; onPaste(text: string): void; onClose(): void }

function PasteQuestion({ text, onPaste, onClose }: PasteQuestionProps) {
  const count = countLines(text)
  return (
    <Question
      title={count === 1 ? 'Paste a line that runs at once?' : `Paste ${count} lines?`}
      label="Paste"
      onClose={onClose}
      onAccept={() => {
        onPaste(text)
        onClose()
      }}
    >
      <pre class="text">
        {showHiddenInOutput(text.slice(0, PREVIEW_CHARACTERS))}
        {text.length > PREVIEW_CHARACTERS && '…'}
      </pre>
    </Question>
  )
}

function LinkQuestion({ link, onClose }: { link: string; onClose(): void }) {
  const uri = parseWebLink(link)
  return (
    <Question
      title={uri === null ? 'This link is not opened' : 'Open this link?'}
      {...(uri !== null && { label: 'Open', href: uri })}
      onClose={onClose}
      onAccept={onClose}
    >
      <p>
        <code>{showHidden(uri ?? link)}</code>
      </p>
      <p>{uri === null ? 'Only links to web pages are opened.' : 'A program of the box has printed it.'}</p>
    </Question>
  )
}

const getError = (state: TerminalState): BoxwoodError | null =>
  state.type === 'failed' || state.type === 'lost' ? state.error : null

function formatState(state: TerminalState): string {
  if (state.type === 'exited') return formatExit(state.exit)
  if (state.type === 'lost') return 'Not connected. The page tries again by itself.'
  return {
    connecting: 'Connecting.',
    connected: 'Connected.',
    detached: 'Detached.',
    failed: 'Not connected.',
  }[state.type]
}
