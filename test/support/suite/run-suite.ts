// Runs the test suite: `npm test` (short part), `npm run test:long` and `npm run test:load`. A file that fails runs once more,
// alone, at the end.
//
//   node test/support/suite/run-suite.ts [options] [FILE or DIRECTORY]...
//     --part=short|long|load default: short. Files and directories replace the part.
//     --reporter=lines|tap   default: lines
//     --without-programs     hides the optional programs from the given files
//     --jobs=N               files that run at the same time. Default: the number of CPUs, at most 2, and one more for the long
//                            part, whose files wait for engines and machines for half of their time
//     --timeout=SECONDS      for each file. Default: 600
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { availableParallelism, constants, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { PROJECT_DIR } from '../project.ts'
import { createMemoryDir, MEMORY_DIR_VARIABLE } from './memory-dir.ts'
import { hasPassed, type Outcome, printResult, printSummary, REPORTERS, type Reporter } from './report.ts'
import { type FileResult, runFile } from './run-file.ts'
import { findRunProcesses, getRunDirs, RUN_VARIABLE, type Run, terminateRun } from './run-processes.ts'
import {
  createTask,
  listTestFiles,
  PARTS,
  type Part,
  runsAlone,
  selectPart,
  sortLongestFirst,
  type Task,
} from './selection.ts'
import { hidePrograms } from './without-programs.ts'

/** This directory is outside node_modules, which `npm ci` removes. */
const STATE_DIR = join(PROJECT_DIR, '.tap/suite')
const TIMINGS_FILE = join(STATE_DIR, 'timings.json')

/** Processes that a file has stopped may need a moment to exit. */
const LEFTOVER_GRACE_MS = 3000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    part: { type: 'string', default: 'short' },
    reporter: { type: 'string', default: 'lines' },
    'without-programs': { type: 'boolean', default: false },
    jobs: { type: 'string' },
    timeout: { type: 'string', default: '600' },
  },
})
const part = readChoice<Part>('part', PARTS)
const reporter = readChoice<Reporter>('reporter', REPORTERS)
const jobs = values.jobs === undefined ? getDefaultJobs() : readNumber('jobs')
const timeoutSeconds = readNumber('timeout')
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

function getDefaultJobs(): number {
  return Math.min(2, availableParallelism()) + (part === 'long' ? 1 : 0)
}

function readNumber(name: 'jobs' | 'timeout'): number {
  const number = Number(values[name])
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} must be an integer above 0`)
  return number
}

async function runSuite(): Promise<void> {
  const timings = readTimings()
  const selected = positionals.length > 0 ? listGiven() : selectPart(PROJECT_DIR, part)
  const hidden = selected.some(({ hidesPrograms }) => hidesPrograms)
    ? hidePrograms(run.tempDir)
    : { prefix: [] }
  const isPossible = (task: Task) => 'prefix' in hidden || !task.hidesPrograms
  if ('skipReason' in hidden)
    console.log(
      `not run: ${selected.filter((task) => !isPossible(task)).length} files without optional programs: ${hidden.skipReason}`,
    )
  const tasks = sortLongestFirst(selected.filter(isPossible), timings)
  if (tasks.length === 0) throw new Error(`no test files: ${positionals.join(' ')}`)
  console.log(`${tasks.length} test files, ${jobs} at a time`)
  const outcomes = await runTasks(tasks, 'prefix' in hidden ? hidden.prefix : [])
  if (isStopped) return
  await cleanUp()
  writeTimings(timings, outcomes)
  printSummary(outcomes, performance.now() - start)
  process.exitCode = outcomes.every(hasPassed) ? 0 : 1
}

async function runTasks(tasks: Task[], prefix: string[]): Promise<Outcome[]> {
  const env = {
    ...process.env,
    [RUN_VARIABLE]: run.id,
    TMPDIR: run.tempDir,
    [MEMORY_DIR_VARIABLE]: run.memoryDir ?? '',
    NODE_COMPILE_CACHE: join(PROJECT_DIR, 'node_modules/.cache/test'),
  }
  let count = 0
  const runNext = async (task: Task, repetition: 'first' | 'second'): Promise<FileResult> => {
    const result = await runFile(task, {
      projectDir: PROJECT_DIR,
      env,
      prefix: task.hidesPrograms ? prefix : [],
      outputFile: join(STATE_DIR, 'output', `${task.name}.${repetition}.tap`),
      timeoutSeconds,
    })
    count += 1
    const position = repetition === 'first' ? `${count}/${tasks.length}` : 'second run'
    if (!isStopped) printResult(result, reporter, count, position)
    return result
  }
  const runFirst = async (task: Task) => outcomes.push({ task, first: await runNext(task, 'first') })

  const outcomes: Outcome[] = []
  const alone = tasks.filter(({ file }) => runsAlone(file))
  const parallel = tasks.filter((task) => !alone.includes(task))
  const runWorker = async () => {
    for (let task = parallel.shift(); task !== undefined && !isStopped; task = parallel.shift())
      await runFirst(task)
  }
  await Promise.all(Array.from({ length: jobs }, runWorker))
  // A process that a file has left would take CPU time from the files that measure it.
  if (alone.length > 0 && !isStopped) await terminateRun(run, { graceMs: LEFTOVER_GRACE_MS })
  for (const task of alone) if (!isStopped) await runFirst(task)
  for (const outcome of outcomes.filter(({ first }) => !first.isOk)) {
    if (isStopped) break
    // Processes of the first run, for example of one that has timed out.
    await terminateRun(run, { graceMs: LEFTOVER_GRACE_MS })
    outcome.second = await runNext(outcome.task, 'second')
  }
  return outcomes
}

/** A directory stands for the test files in it. */
function listGiven(): Task[] {
  return positionals
    .map((path) => relative(PROJECT_DIR, resolve(path)))
    .flatMap((path) =>
      statSync(join(PROJECT_DIR, path)).isDirectory() ? listTestFiles(PROJECT_DIR, path) : [path],
    )
    .map((file) => createTask(file, values['without-programs']))
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
    return JSON.parse(readFileSync(TIMINGS_FILE, 'utf8'))
  } catch {
    // The first run, or a file that was written incompletely.
    return {}
  }
}

function writeTimings(earlier: Record<string, number>, outcomes: Outcome[]): void {
  const measured = outcomes.map(({ first }) => [first.name, first.milliseconds / 1000])
  mkdirSync(STATE_DIR, { recursive: true })
  writeFileSync(TIMINGS_FILE, `${JSON.stringify({ ...earlier, ...Object.fromEntries(measured) }, null, 2)}\n`)
}
