// Runs the test suite: `npm test` (short part), `npm run test:long` and `npm run test:load`. A file that fails runs once more,
// alone, at the end.
//
//   node test/support/suite/run-suite.ts [options] [FILE or DIRECTORY]...
//     --part=short|long|load default: short. Files and directories replace the part.
//     --reporter=lines|tap   default: lines
//     --without-programs     hides the optional programs from the files, as in the short part of CI
//     --jobs=N               files that run at the same time. Default: slots.ts
//     --minutes=N            the budget: files for which it has no time are not run. Default: no limit
//     --timeout=SECONDS      for each file, on a usual machine. Default: 600
//     --state=DIRECTORY      has the times and outputs of the files. Default: .tap/suite
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { PROJECT_DIR } from '../project.ts'
import { SLOWDOWN } from '../wait-until.ts'
import { createMemoryDir, MEMORY_DIR_VARIABLE } from './memory-dir.ts'
import { createBudget, createEstimate, readRevision, sortByValue, sortLongestFirst } from './order.ts'
import { getOwnMountsPrefix } from './own-mounts.ts'
import { hasPassed, type Outcome, printResult, printSummary, REPORTERS, type Reporter } from './report.ts'
import { type FileResult, runFile } from './run-file.ts'
import { findRunProcesses, getRunDirs, RUN_VARIABLE, type Run, terminateRun } from './run-processes.ts'
import { isLong, listTestFiles, PARTS, type Part, runsAlone, selectPart } from './selection.ts'
import { getSlots, runInSlots } from './slots.ts'
import { hidePrograms } from './without-programs.ts'

/** This directory is outside node_modules, which `npm ci` removes. */
const DEFAULT_STATE_DIR = join(PROJECT_DIR, '.tap/suite')

/** Processes that a file has stopped may need a moment to exit. */
const LEFTOVER_GRACE_MS = 3000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    part: { type: 'string', default: 'short' },
    reporter: { type: 'string', default: 'lines' },
    'without-programs': { type: 'boolean', default: false },
    jobs: { type: 'string' },
    minutes: { type: 'string' },
    timeout: { type: 'string', default: '600' },
    state: { type: 'string', default: DEFAULT_STATE_DIR },
  },
})
const part = readChoice<Part>('part', PARTS)
const reporter = readChoice<Reporter>('reporter', REPORTERS)
const slots = getSlots(values.jobs === undefined ? undefined : readNumber('jobs'))
const budget = createBudget(values.minutes === undefined ? undefined : readNumber('minutes'))
const timeoutSeconds = readNumber('timeout')
const stateDir = resolve(values.state)
const timingsFile = join(stateDir, 'timings.json')
const run: Run = {
  id: randomBytes(8).toString('hex'),
  // The name is short, because the path of a Unix socket has at most 107 bytes.
  tempDir: mkdtempSync(join(tmpdir(), 'bw-')),
  memoryDir: createMemoryDir(),
}
const start = performance.now()
let isStopped = false

// Tests also run programs as other users.
for (const dir of getRunDirs(run)) chmodSync(dir, 0o1777)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(signal))
try {
  await runSuite()
} catch (error) {
  await terminateRun(run, { graceMs: 0 })
  await removeTempDirs()
  throw error
}

function readChoice<T extends string>(name: 'part' | 'reporter', choices: readonly T[]): T {
  const choice = choices.find((other) => other === values[name])
  if (choice === undefined) throw new Error(`--${name} must be one of: ${choices.join(', ')}`)
  return choice
}

function readNumber(name: 'jobs' | 'minutes' | 'timeout'): number {
  const number = Number(values[name])
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} must be an integer above 0`)
  return number
}

async function runSuite(): Promise<void> {
  const timings = readTimings()
  const seconds = createEstimate(timings, SLOWDOWN)
  const selected = positionals.length > 0 ? listGiven() : selectPart(PROJECT_DIR, part)
  if (selected.length === 0) throw new Error(`no test files: ${positionals.join(' ')}`)
  const files =
    values.minutes === undefined
      ? sortLongestFirst(selected, seconds)
      : sortByValue(selected, { seconds, isLong, revision: readRevision(PROJECT_DIR) })
  const prefix = getPrefix()
  const slotCount = slots.min === slots.max ? `${slots.min}` : `${slots.min} to ${slots.max}`
  console.log(`${files.length} test files, ${slotCount} at a time; deadlines × ${SLOWDOWN}`)
  const { outcomes, notRun } = await runFiles(files, seconds, prefix)
  if (isStopped) return
  await cleanUp()
  writeTimings(timings, outcomes)
  printSummary({ outcomes, notRun, milliseconds: performance.now() - start })
  process.exitCode = outcomes.length > 0 && outcomes.every(hasPassed) ? 0 : 1
}

/** The arguments before the command of each file. */
function getPrefix(): string[] {
  if (!values['without-programs']) return getOwnMountsPrefix()
  const hidden = hidePrograms(run.tempDir)
  if ('prefix' in hidden) return hidden.prefix
  console.log(`The files run with the optional programs of this machine: ${hidden.skipReason}`)
  return getOwnMountsPrefix()
}

async function runFiles(files: string[], seconds: (file: string) => number, prefix: string[]) {
  const env = {
    ...process.env,
    [RUN_VARIABLE]: run.id,
    TMPDIR: run.tempDir,
    [MEMORY_DIR_VARIABLE]: run.memoryDir ?? '',
    NODE_COMPILE_CACHE: join(PROJECT_DIR, 'node_modules/.cache/test'),
  }
  let count = 0
  const runNext = async (file: string, repetition: 'first' | 'second'): Promise<FileResult> => {
    const result = await runFile(file, {
      projectDir: PROJECT_DIR,
      env,
      prefix,
      outputFile: join(stateDir, 'output', `${file}.${repetition}.tap`),
      // A file that hangs ends at most this long after the budget.
      timeoutSeconds: Math.ceil(
        Math.min(timeoutSeconds * SLOWDOWN, budget.remainingSeconds() + timeoutSeconds),
      ),
    })
    count += 1
    const position = repetition === 'first' ? `${count}/${files.length}` : 'second run'
    if (!isStopped) printResult(result, reporter, count, position)
    return result
  }
  const outcomes: Outcome[] = []
  const runFirst = async (file: string) => outcomes.push({ first: await runNext(file, 'first') })

  const alone = files.filter(runsAlone)
  const parallel = files.filter((file) => !runsAlone(file))
  const takeNext = (waiting: string[]): string | undefined => {
    const index = waiting.findIndex((file) => budget.hasTimeFor(seconds(file)))
    return isStopped || index === -1 ? undefined : waiting.splice(index, 1)[0]
  }
  // First: a process that another file has left would take CPU time from the files that measure it.
  for (let file = takeNext(alone); file !== undefined; file = takeNext(alone)) await runFirst(file)
  await runInSlots(() => takeNext(parallel), runFirst, slots)
  for (const outcome of outcomes.filter(({ first }) => !first.isOk)) {
    if (isStopped || !budget.hasTimeFor(0)) break
    // Processes of the first run, for example of one that has timed out.
    await terminateRun(run, { graceMs: LEFTOVER_GRACE_MS })
    outcome.second = await runNext(outcome.first.file, 'second')
  }
  return { outcomes, notRun: [...parallel, ...alone].sort() }
}

/** A directory stands for the test files in it. */
function listGiven(): string[] {
  return positionals
    .map((path) => relative(PROJECT_DIR, resolve(path)))
    .flatMap((path) =>
      statSync(join(PROJECT_DIR, path)).isDirectory() ? listTestFiles(PROJECT_DIR, path) : [path],
    )
}

/** Terminates what the test files have left behind, and prints it. */
async function cleanUp(): Promise<void> {
  const deadline = Date.now() + LEFTOVER_GRACE_MS
  while (Date.now() < deadline && findRunProcesses(run).length > 0)
    await new Promise((resolve) => setTimeout(resolve, 100))
  const leftovers = findRunProcesses(run)
  if (leftovers.length > 0) console.log('\nprocesses that the tests have left:')
  for (const { pid, command } of leftovers)
    console.log(`${String(pid).padStart(8)}  ${command.slice(0, 200)}`)
  await terminateRun(run, { graceMs: 0 })
  await removeTempDirs()
}

/** Keeps a directory while a file system is mounted below it. */
async function removeTempDirs(): Promise<void> {
  for (const dir of getRunDirs(run)) {
    if (readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${dir}/`)) continue
    await rm(dir, { recursive: true, force: true, maxRetries: 5 }).catch((error: Error) =>
      console.error(`A directory of temporary files remains: ${error.message}`),
    )
  }
}

async function stop(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): Promise<void> {
  // npm forwards a signal that the terminal has sent to this process too.
  if (isStopped) return
  isStopped = true
  console.log(`\n${signal}: terminating the processes of the tests`)
  const remaining = await terminateRun(run, { graceMs: 2000 })
  for (const { pid, command } of remaining) console.error(`still running: ${pid} ${command}`)
  await removeTempDirs()
  process.exit(128 + constants.signals[signal])
}

/** Seconds of the files in their last run. */
function readTimings(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(timingsFile, 'utf8'))
  } catch {
    // The first run, or a file that was written incompletely.
    return {}
  }
}

function writeTimings(earlier: Record<string, number>, outcomes: Outcome[]): void {
  const measured = outcomes.map(({ first }) => [first.file, first.milliseconds / 1000])
  mkdirSync(stateDir, { recursive: true })
  writeFileSync(timingsFile, `${JSON.stringify({ ...earlier, ...Object.fromEntries(measured) }, null, 2)}\n`)
}
