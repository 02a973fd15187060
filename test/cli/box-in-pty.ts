// Runs the box command in a pseudoterminal, as a person does.
import { join, resolve } from 'node:path'
import { spawn } from '@lydell/node-pty'
import type { Test } from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { type Target, TEST_PATH } from './run-box.ts'

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts')

export type BoxInPty = {
  /** Everything that the terminal has received. */
  readonly output: string
  type(text: string): void
  resize(cols: number, rows: number): void
  /** Stops reading from the terminal, as Ctrl-S does. */
  pause(): void
  resume(): void
  /** Waits until the output after the previous match contains `text`. */
  waitFor(text: string | RegExp): Promise<void>
  waitForExit(): Promise<{ exitCode: number; signal: number }>
}

/**
 * Runs `script`, in which `box` is the command, and $BOX its path for `exec`. It is killed after the test.
 */
export function runBoxInPty(
  t: Test,
  { url, key }: Target,
  script: string,
  { env = {}, cols = 80, rows = 24 }: { env?: Record<string, string>; cols?: number; rows?: number } = {},
): BoxInPty {
  // The test runner and the CI system set these.
  const { NO_COLOR: _, FORCE_COLOR: __, CI: ___, ...inheritedEnv } = process.env
  const box = `box() { '${process.execPath}' '${MAIN}' "$@"; }`
  const pty = spawn('/bin/sh', ['-c', `${box}\n${script}`], {
    name: 'xterm-256color',
    cols,
    rows,
    cwd: join(import.meta.dirname),
    env: {
      ...inheritedEnv,
      PATH: TEST_PATH,
      BOXWOOD_URL: `${url}/api/v1`,
      BOXWOOD_API_KEY: key,
      BOX: `${process.execPath} ${MAIN}`,
      ...env,
    },
  })
  let output = ''
  let matched = 0
  let exit: { exitCode: number; signal: number } | undefined
  pty.onData((data) => {
    output += data
  })
  pty.onExit(({ exitCode, signal = 0 }) => {
    exit = { exitCode, signal }
  })
  t.teardown(() => {
    if (exit === undefined) pty.kill('SIGKILL')
  })
  return {
    get output() {
      return output
    },
    type: (text) => pty.write(text),
    resize: (cols, rows) => pty.resize(cols, rows),
    pause: () => pty.pause(),
    resume: () => pty.resume(),
    async waitFor(text) {
      const find = () => {
        const rest = output.slice(matched)
        const index = typeof text === 'string' ? rest.indexOf(text) : rest.search(text)
        if (index < 0) return false
        const { length } = typeof text === 'string' ? text : (text.exec(rest)?.[0] ?? '')
        matched += index + length
        return true
      }
      await waitUntil(`the terminal shows ${text}`, find).catch((error) => {
        throw new Error(`${error.message}: ${JSON.stringify(output.slice(-2000))}`)
      })
    },
    waitForExit: () => waitUntil('the command exits', () => exit),
  }
}
