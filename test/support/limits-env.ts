// The variable that sets limits of a coordinator.
import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Limits } from '../../coordinator/base/limits.ts'
import { PROJECT_DIR } from './project.ts'

const DIR = join(PROJECT_DIR, 'node_modules/.cache/boxwood/limits')

/** Writes the file of the limits, which all tests with the same ones share. The other limits have their defaults. */
export function limitsEnv(limits: Partial<Limits>): { BOXWOOD_LIMITS: string } {
  const text = `${JSON.stringify(limits)}\n`
  const file = join(DIR, `${createHash('sha256').update(text).digest('hex').slice(0, 16)}.json`)
  mkdirSync(DIR, { recursive: true })
  // Another process may write the same file.
  const temporary = `${file}.${process.pid}`
  writeFileSync(temporary, text)
  renameSync(temporary, file)
  return { BOXWOOD_LIMITS: file }
}
