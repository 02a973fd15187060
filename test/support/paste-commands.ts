// Runs commands that a page shows to copy, as a shell does after a paste. `box` prints its arguments instead.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const SHELLS = ['sh', 'bash']

/** @returns the arguments of `box`, per shell that is installed. Rejects when the text runs something else. */
export async function pasteCommand(text: string, cwd: string): Promise<Record<string, string[]>> {
  const results: Record<string, string[]> = {}
  for (const shell of SHELLS) {
    const script = `box() { printf 'box\\0'; for word; do printf '%s\\0' "$word"; done; }\n${text}\n`
    const env = { PATH: process.env.PATH, HOME: cwd, LC_ALL: 'C' }
    const { stdout, stderr } = await promisify(execFile)(shell, ['-c', script], { cwd, env }).catch(
      (error) => {
        if (error.code === 'ENOENT') return { stdout: 'box\0', stderr: '' }
        throw error
      },
    )
    const [name, ...words] = stdout.split('\0').slice(0, -1)
    if (stderr !== '' || name !== 'box')
      throw new Error(`${shell}: ${text} printed ${JSON.stringify(stdout)} ${stderr}`)
    results[shell] = words
  }
  return results
}
