// Prints the progress and the summary of a run of the test suite.
import { type FileResult, listFailures } from './run-file.ts'

export const REPORTERS = ['lines', 'tap'] as const
export type Reporter = (typeof REPORTERS)[number]

/** A file with the results of its first run and, when that failed, of its second run. */
export type Outcome = { first: FileResult; second?: FileResult }

export const isFlaky = ({ first, second }: Outcome): boolean => !first.isOk && second?.isOk === true
export const hasPassed = ({ first, second }: Outcome): boolean => (second ?? first).isOk

const SLOWEST = 15

/** One line for a file that has passed; a failed one also has its failures. `tap`: the complete output of each file. */
export function printResult(result: FileResult, reporter: Reporter, number: number, position: string): void {
  const status = result.isOk ? 'ok' : 'not ok'
  if (reporter === 'tap') {
    console.log(`# Subtest: ${result.file}`)
    console.log(indent(result.output))
    console.log(`${status} ${number} - ${result.file} # time=${result.milliseconds}ms\n`)
    return
  }
  console.log(`${status.padEnd(6)} ${formatSeconds(result.milliseconds)}  ${result.file}  (${position})`)
  if (!result.isOk) console.log(indent(listFailures(result.output)))
}

export type Summary = {
  outcomes: Outcome[]
  /** The files for which the budget had no time. */
  notRun: string[]
  milliseconds: number
}

export function printSummary({ outcomes, notRun, milliseconds }: Summary): void {
  const results = outcomes.map(({ first, second }) => second ?? first)
  printTimings(outcomes.map(({ first }) => first))
  printSkipped(results)
  const failed = outcomes.filter((outcome) => !hasPassed(outcome))
  const flaky = outcomes.filter(isFlaky)
  for (const { first } of flaky) console.log(`\nflaky: ${first.file}\n${indent(listFailures(first.output))}`)
  for (const { second, first } of failed)
    console.log(`\nfailed twice: ${first.file}\n${indent(listFailures((second ?? first).output))}`)
  if (notRun.length > 0) console.log('')
  for (const file of notRun) console.log(`not run, because the budget of time was used: ${file}`)
  const sum = (key: 'passed' | 'failed') => results.reduce((total, result) => total + result[key], 0)
  console.log(`\nassertions: ${sum('passed')} passed, ${sum('failed')} failed`)
  const passedFiles = outcomes.length - failed.length
  const time = formatDuration(milliseconds)
  console.log(
    `${outcomes.length} files in ${time}: ${passedFiles} passed, ${failed.length} failed, ${flaky.length} flaky, ${notRun.length} not run`,
  )
}

function printTimings(results: FileResult[]): void {
  console.log('\nslowest files:')
  const slowest = [...results].sort((a, b) => b.milliseconds - a.milliseconds).slice(0, SLOWEST)
  for (const { file, milliseconds } of slowest) console.log(`${formatSeconds(milliseconds)}  ${file}`)
  console.log('\ntime of the files of each directory:')
  const groups = Map.groupBy(results, ({ file }) => file.split('/').slice(0, 2).join('/'))
  const totals = [...groups].map(([name, files]) => ({
    name,
    count: files.length,
    milliseconds: files.reduce((total, file) => total + file.milliseconds, 0),
  }))
  for (const { name, count, milliseconds } of totals.sort((a, b) => b.milliseconds - a.milliseconds))
    console.log(`${formatSeconds(milliseconds)}  ${name} (${count} files)`)
}

function printSkipped(results: FileResult[]): void {
  const reasons = Map.groupBy(
    results.flatMap(({ skipped }) => skipped),
    (reason) => reason,
  )
  if (reasons.size > 0) console.log('\nskipped tests:')
  for (const [reason, tests] of reasons) console.log(`${String(tests.length).padStart(6)}  ${reason}`)
}

const indent = (text: string): string => text.trimEnd().replace(/^(?=.)/gm, '    ')

const formatSeconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1).padStart(6)} s`

const formatDuration = (milliseconds: number): string => {
  const seconds = Math.round(milliseconds / 1000)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
