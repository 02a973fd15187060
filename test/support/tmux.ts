// A terminal in tmux: types keys and reads the screen, as a person does.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { requires } from './requires.ts'
import { waitUntil } from './wait-until.ts'

/** Reason to skip tests that need tmux; false: it is installed. */
export const NO_TMUX = requires('tmux')

export type TmuxTerminal = {
  /** Types text, without a newline. */
  type(text: string): void
  /** Presses keys by their tmux names, such as Enter or C-c. */
  press(...keys: string[]): void
  resize(cols: number, rows: number): void
  /** The visible text. */
  readScreen(): string
  /** Waits until the screen contains `text`. */
  waitFor(text: string | RegExp): Promise<string>
}

/** Starts a shell in a tmux server of its own, which is stopped after the test. Its prompt is `local$ `. */
export async function startTmux(
  t: Test,
  { cols = 100, rows = 30, env = {} as Record<string, string> } = {},
): Promise<TmuxTerminal> {
  const socket = `boxwood-${randomBytes(6).toString('hex')}`
  const tmux = (...args: string[]) =>
    execFileSync('tmux', ['-L', socket, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      env: { ...process.env, ...env, TMUX: '', LC_ALL: 'C.UTF-8' },
    })
  t.teardown(() => tmux('kill-server'))
  tmux('new-session', '-d', '-x', String(cols), '-y', String(rows), 'sh')
  const readScreen = () => tmux('capture-pane', '-p')
  const terminal: TmuxTerminal = {
    type: (text) => void tmux('send-keys', '-l', text),
    press: (...keys) => void tmux('send-keys', ...keys),
    resize: (cols, rows) => void tmux('resize-window', '-x', String(cols), '-y', String(rows)),
    readScreen,
    waitFor: (text) =>
      waitUntil(`the screen shows ${text}`, () => {
        const screen = readScreen()
        return (typeof text === 'string' ? screen.includes(text) : text.test(screen)) && screen
      }).catch((error) => {
        throw new Error(`${error.message}:\n${readScreen()}`)
      }),
  }
  terminal.type("PS1='local$ '; clear")
  terminal.press('Enter')
  await terminal.waitFor(/^local\$/m)
  return terminal
}
