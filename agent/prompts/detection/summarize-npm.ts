// Summarizes the error output of npm.
import { lastLines } from './program-versions.ts'

const MAX_LINES = 60
const MAX_CHARS = 20_000
const MAX_SUMMARY_CHARS = 400
const PREFIX = /^npm (?:error|ERR!) ?/
/** Lines that repeat the code. */
const FIELD = /^(?:code|errno|syscall|path|dest|network) /
const LOG = /A complete log of this run can be found in:? *(\S*)/

/** Returns the code of the error, its first sentence, and the name of the log; the last line for an output without errors of npm. */
export function summarizeNpm(output: string): string {
  const tail = lastLines(output, MAX_LINES, MAX_CHARS)
  const errors = tail
    .split('\n')
    .filter((line) => PREFIX.test(line))
    .map((line) => line.replace(PREFIX, '').trim())
  if (errors.length === 0) return lastLines(output, 1, MAX_SUMMARY_CHARS)
  const code = errors.find((line) => line.startsWith('code '))?.slice('code '.length)
  const text = errors.find((line) => line !== '' && !FIELD.test(line) && !LOG.test(line))
  const log = LOG.exec(errors.join(' '))?.[1]
  const problem = [code, text].filter((part) => part !== undefined).join(': ')
  const summary = problem.slice(0, MAX_SUMMARY_CHARS).replace(/\.$/, '')
  return `${summary}${log ? ` (log on the box: ${log})` : ''}.`
}
