// Runs one test file and reads its TAP output.
import { spawn } from 'node:child_process'
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'

export type FileResult = {
  /** Relative to the project directory. */
  file: string
  isOk: boolean
  milliseconds: number
  /** Assertions. A file that ends without a failed assertion, but not as passed, counts as one failure. */
  passed: number
  failed: number
  /** The reasons of its skipped tests. */
  skipped: string[]
  /** TAP, and what the file wrote to stderr. */
  output: string
}

export type RunFileOptions = {
  projectDir: string
  env: NodeJS.ProcessEnv
  /** A command that executes its arguments. Empty: the file is started directly. */
  prefix: string[]
  /** The output is written to this file while the test runs. */
  outputFile: string
  timeoutSeconds: number
}

/** After its timeout tap prints the unfinished tests. The process can have open handles that keep it running. */
const EXIT_GRACE_MS = 2000

export async function runFile(file: string, options: RunFileOptions): Promise<FileResult> {
  mkdirSync(dirname(options.outputFile), { recursive: true })
  const log = createWriteStream(options.outputFile)
  const start = performance.now()
  const [program = '', ...args] = [...options.prefix, process.execPath, '--enable-source-maps', file]
  const child = spawn(program, args, {
    cwd: options.projectDir,
    env: { ...withoutTap(options.env), TAP: '1', TAP_TIMEOUT: String(options.timeoutSeconds) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.pipe(log, { end: false })
  child.stderr.pipe(log, { end: false })
  const killMs = options.timeoutSeconds * 1000 + EXIT_GRACE_MS
  let hasTimedOut = false
  const timer = setTimeout(() => {
    hasTimedOut = true
    child.kill('SIGTERM')
  }, killMs)
  const killTimer = setTimeout(() => child.kill('SIGKILL'), killMs + EXIT_GRACE_MS)
  // A process that outlives the file can hold its stdout open: the end of the file is its exit.
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (...status) => setTimeout(resolve, 50, status))
    child.once('close', (...status) => resolve(status))
  })
  clearTimeout(timer)
  clearTimeout(killTimer)
  child.stdout.destroy()
  child.stderr.destroy()
  await new Promise<void>((resolve) => log.end(resolve))
  const output = readFileSync(options.outputFile, 'utf8')
  const milliseconds = Math.round(performance.now() - start)
  const counts = readCounts(output)
  const skipped = [...output.matchAll(/^ *(?:ok|1\.\.0)\b.*# SKIP (.+)$/gim)].map(([, reason = '']) =>
    reason.trim(),
  )
  const problem = findProblem({ code, signal, hasTimedOut, counts, skipped, ...options })
  const { passed, failed } = counts ?? { passed: 0, failed: 0 }
  return {
    file,
    isOk: problem === undefined,
    milliseconds,
    passed,
    failed: problem === undefined ? 0 : Math.max(failed, 1),
    skipped,
    output: problem === undefined ? output : `${output.trimEnd()}\n# ${problem}\n`,
  }
}

/** The runner can itself run in a test: as a child of that test, tap prints no totals. */
const withoutTap = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/^_?TAP/.test(name)))

type Counts = Pick<FileResult, 'passed' | 'failed'>

type Exit = {
  code: number | null
  signal: string | null
  hasTimedOut: boolean
  counts: Counts | undefined
  skipped: string[]
  timeoutSeconds: number
}

function findProblem({
  code,
  signal,
  hasTimedOut,
  counts,
  skipped,
  timeoutSeconds,
}: Exit): string | undefined {
  if (hasTimedOut) return `timed out after ${timeoutSeconds} s`
  if (signal !== null) return `terminated by ${signal}`
  if (code !== 0) return `exited with ${code}`
  if (counts === undefined) return 'exited without the number of its assertions'
  if (counts.failed > 0) return `exited with 0 after ${counts.failed} failed assertions`
  // tap refuses tests that are added after a file seemed to have ended, and exits with 0.
  return counts.passed === 0 && skipped.length === 0 ? 'exited with 0 and ran no test' : undefined
}

/** Reads the last comment with totals, `# { total: 17, pass: 16, fail: 1 }`. A file without assertions has only a plan. */
function readCounts(output: string): Counts | undefined {
  const totals = output.match(/^# \{ total: .*\}$/gm)?.at(-1)
  if (totals === undefined) return /^1\.\.0\b/m.test(output) ? { passed: 0, failed: 0 } : undefined
  const read = (name: string) => Number(new RegExp(`[{ ]${name}: (\\d+)`).exec(totals)?.[1] ?? 0)
  return { passed: read('pass'), failed: read('fail') }
}

/** The failed assertions with their diagnostics. The end of the output when it has none: the file has crashed. */
export function listFailures(output: string): string {
  const assertions = output.match(/^ *not ok .*\n( +---\n[\s\S]*?\n +\.\.\.\n)?/gm) ?? []
  const details = assertions.filter((assertion) => assertion.includes('---\n'))
  const comments = output.match(/^# (timed out|terminated|exited) .*$/gm) ?? []
  if (details.length > 0) return [...details, ...comments].join('').trimEnd()
  return output.trimEnd().split('\n').slice(-40).join('\n')
}
