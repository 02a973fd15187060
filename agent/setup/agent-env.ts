// The file agent.env: shell assignments that supervise.sh reads.
import { writeFile } from 'node:fs/promises'
import { readIfExists } from './layout.ts'

const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)='((?:[^']|'\\'')*)'$/

/** Replaces the file. */
export async function writeAgentEnv(path: string, env: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(env).map(([name, value]) => `${name}=${quote(value)}\n`)
  // The URL of a proxy may contain a password.
  await writeFile(path, lines.join(''), { mode: 0o600, flush: true })
}

/** Null when there is no file. Other lines than assignments are ignored. */
export async function readAgentEnv(path: string): Promise<Record<string, string> | null> {
  const text = await readIfExists(path)
  if (text === null) return null
  const env: Record<string, string> = {}
  for (const line of text.split('\n')) {
    const [, name, value] = ASSIGNMENT.exec(line) ?? []
    if (name !== undefined && value !== undefined) env[name] = value.replaceAll("'\\''", "'")
  }
  return env
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
