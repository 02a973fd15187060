// What is said alike of processes and of the records of commands: their state, and that there is none with that id.
import { EXIT, Failure } from './exit-codes.ts'
import { printable } from './output.ts'

export type End = { exitCode: number | null; signal: string | null }

/** `exited 0`, `killed TERM`; `word` where neither is known. */
export function endWords(word: string, { exitCode, signal }: End): string {
  if (exitCode !== null) return `${word} ${exitCode}`
  return signal === null ? word : `${word} ${signal}`
}

/** The same promise, with a sentence of its own when what is asked for is not there. */
export function orNone<T>(asked: Promise<T>, said: string): Promise<T> {
  return asked.catch((error) => {
    throw error instanceof Failure && error.code === 'not_found'
      ? new Failure(EXIT.notFound, said, { code: 'not_found' })
      : error
  })
}

export const noProcess = (name: string, id: string): string =>
  `There is no process ${printable(id)} on ${name}. \`box ps ${name}\` shows those there are.`

export const noRecord = (name: string, id: string): string =>
  `There is no record ${printable(id)} of ${name}. \`box history ${name}\` shows those there are.`
