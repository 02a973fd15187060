// One terminal session with its actions. It is in a file of its own, because the emulator is large.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { TerminalState } from '../api/terminal-connection.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { formatBoxPath } from '../data/routes.ts'
import { setUsesWebgl, usesWebgl } from '../data/terminal-renderer.ts'
import { countLines, formatExit, hasSeveralLines, isEnded, parseWebLink } from '../data/terminal-text.ts'
import { showHidden, showHiddenInOutput } from '../data/visible-text.ts'
import { Command } from './command.tsx'
import { EndSession } from './end-session.tsx'
import { Problem } from './problem.tsx'
import { Question } from './question.tsx'
import { useTerminal } from './use-terminal.ts'

const PREVIEW_CHARACTERS = 2_000

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
      <p class="tools">
        <a ref={leave} href={formatBoxPath(hostname, 'terminals')}>
          Detach
        </a>
        <button
          type="button"
          aria-pressed={isFull.value}
          onClick={() => {
            isFull.value = !isFull.value
            focus()
          }}
        >
          Full screen
        </button>
        {!isEnded(state) && <EndSession box={box} session={session} onEnd={focus} />}
        {state.type === 'failed' && (
          <button type="button" onClick={terminal.attachAgain}>
            Attach again
          </button>
        )}
        <label>
          <input
            type="checkbox"
            checked={usesWebgl.value}
            onChange={({ currentTarget }) => setUsesWebgl(currentTarget.checked)}
          />{' '}
          WebGL
        </label>
        <Command text={formatCommandLine('box', 'attach', hostname, session)} />
        <span role="status">
          {showHidden(formatState(state))} {terminal.webglProblem}
        </span>
      </p>
      <Problem error={getError(state)} />
      <div ref={element} class="screen" />
      <p>
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
