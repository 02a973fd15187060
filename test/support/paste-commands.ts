// Runs commands that a page shows to copy, as a shell does after a paste. `box` prints its arguments instead.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const SHELLS = ['sh', 'bash']
const BOX = `box() { printf '%s\\0' "$#" "$@"; }`

/**
 * Pastes the commands one after another.
 * @returns the arguments of each call of `box`, per shell that is installed. Rejects when something else has printed.
 */
export async function pasteCommands(commands: readonly string[], cwd: string): Promise<string[][][]> {
  const results = await Promise.all(
    SHELLS.map((shell) => runShell(shell, [BOX, ...commands].join('\n'), cwd)),
  )
  return results.filter((calls) => calls !== null)
}

/** @returns the arguments of `box`, per shell */
export async function pasteCommand(command: string, cwd: string): Promise<string[][]> {
  const results = await pasteCommands([command], cwd)
  return results.map(([words = []]) => words)
}

/** Null: the shell is not installed. */
async function runShell(shell: string, script: string, cwd: string): Promise<string[][] | null> {
  const env = { PATH: process.env.PATH, HOME: cwd, LC_ALL: 'C' }
  const output = await promisify(execFile)(shell, ['-c', script], { cwd, env }).catch((error) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (output === null) return null
  const calls: string[][] = []
  const printed = output.stdout.split('\0')
  for (let index = 0; index < printed.length - 1; ) {
    const count = Number(printed[index])
    calls.push(printed.slice(index + 1, index + 1 + count))
    index += 1 + count
  }
  if (output.stderr !== '' || printed.at(-1) !== '' || calls.some(({ length }) => !(length > 0)))
    throw new Error(`${shell}: ${script} printed ${JSON.stringify(output)}`)
  return calls
}
