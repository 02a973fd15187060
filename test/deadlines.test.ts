// The tests and benchmarks have no deadlines except those of test/support/wait-until.ts, which grow with the slowness of the
// machine. Checks what a pattern can check: a value that is the subject of a test needs another name, or an entry in ALLOWED.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { splitCode } from './support/code-parts.ts'
import { PROJECT_DIR } from './support/project.ts'

/** Files with their reason. */
const ALLOWED = new Map([
  ['test/support/wait-until.ts', 'defines the deadlines'],
  ['test/support/suite/run-suite.ts', 'limits the time of each file'],
  ['test/shared/tcp-over-websocket.test.ts', 'tests the timeouts of a socket'],
])

const SCALED = '(?:LONG_)?DEADLINE_MS\\b'
/** A number, or another constant. */
const UNSCALED = `(?!${SCALED})(?:\\d|[A-Z][A-Z\\d_]+\\b)`

const RUNNER = 'no timeout: the runner limits the time of each file'
const SCALED_ONLY = 'DEADLINE_MS or LONG_DEADLINE_MS'
const WAIT = 'waitUntil()'

const REJECTED: readonly [RegExp, string][] = [
  [/\bt(?:est)?\.setTimeout\(/g, RUNNER],
  [/\btest\([^)]*\btimeout\b/g, RUNNER],
  [new RegExp(`\\btimeout: *${UNSCALED}`, 'g'), SCALED_ONLY],
  [new RegExp(`\\bAbortSignal\\.timeout\\((?!${SCALED})`, 'g'), SCALED_ONLY],
  [new RegExp(`\\.set(?:Default|DefaultNavigation)?Timeout\\(\\s*${UNSCALED}`, 'g'), SCALED_ONLY],
  [/\b(?:performance|Date)\.now\(\)\s*[<>][^;\n]*(?:deadline|timeout|limit)\w*/gi, WAIT],
  [/\b\w*(?:deadline|timeout|limit)\w*\s*[<>]=?\s*(?:performance|Date)\.now\(\)/gi, WAIT],
  [/\b\w*(?:[dD]eadline|[tT]imeout)\w* = (?:performance|Date)\.now\(\) \+ [\dA-Z]/g, WAIT],
  [
    new RegExp(`\\bsetTimeout\\(\\s*\\(\\) => [\\w.]*\\b(?:reject|destroy|abort)\\(.*,\\s*${UNSCALED}`, 'g'),
    SCALED_ONLY,
  ],
  [/\bconst (?:\w+_)?(?:DEADLINE|TIMEOUT|LIMIT)_(?:MS|SECONDS) = \d/g, SCALED_ONLY],
  [/\bconst (?:\w+_)?(?:deadline|timeout) = \d/gi, SCALED_ONLY],
]

/** Functions whose third argument is a deadline. */
const WAITING = /\b(?:waitUntil|waitForState|waitForExpression)\(/g
/** A name in lower case is a parameter, also in the definition of the function. */
const THIRD_ARGUMENT = new RegExp(`^(?:${SCALED}|[a-z]\\w*(?:\\?: number| = ${SCALED})?)$`)

const MAX_CALL_LENGTH = 5000

type Problem = { index: number; text: string; instead: string }

/** Returns the problems of a file, each as `file:line "code": what to write instead`. */
function findProblems(file: string, source: string): string[] {
  const code = splitCode(file, source)
    .code.map(({ text }) => text)
    .join('\n')
  const rejected = REJECTED.flatMap(([pattern, instead]) =>
    Array.from(code.matchAll(pattern), ({ 0: text, index }): Problem => ({ index, text, instead })),
  )
  const waiting = Array.from(code.matchAll(WAITING), ({ 0: text, index }): Problem[] => {
    const [, , deadline] = splitArguments(code, index + text.length)
    if (deadline === undefined || THIRD_ARGUMENT.test(deadline)) return []
    return [{ index, text: `${text}…, ${deadline})`, instead: SCALED_ONLY }]
  })
  return [...rejected, ...waiting.flat()].map(
    ({ index, text, instead }) => `${file}:${code.slice(0, index).split('\n').length} "${text}": ${instead}`,
  )
}

/** The arguments from the offset, which follows the opening bracket, to the closing one. The code has no strings. */
function splitArguments(code: string, offset: number): string[] {
  const found = ['']
  let depth = 0
  for (const character of code.slice(offset, offset + MAX_CALL_LENGTH)) {
    if ('([{'.includes(character)) depth += 1
    if (')]}'.includes(character)) depth -= 1
    if (depth < 0) break
    if (character === ',' && depth === 0) found.push('')
    else found[found.length - 1] += character
  }
  const trimmed = found.map((text) => text.trim())
  return trimmed.at(-1) === '' ? trimmed.slice(0, -1) : trimmed
}

t.test('no test and no benchmark has a deadline of its own', async (t) => {
  const files = globSync('{test,bench}/**/*.ts', {
    cwd: PROJECT_DIR,
    exclude: (path) => path.endsWith('node_modules'),
  })
  t.ok(files.length > 500, `${files.length} files`)
  const found = files.flatMap((file) =>
    findProblems(file, readFileSync(join(PROJECT_DIR, file), 'utf8')).map((problem) => ({ file, problem })),
  )
  t.same(
    found.filter(({ file }) => !ALLOWED.has(file)).map(({ problem }) => problem),
    [],
  )
  t.same(
    [...ALLOWED.keys()].filter((allowed) => !found.some(({ file }) => file === allowed)),
    [],
    'no exception without a need',
  )
})

t.test('the check reports deadlines', async (t) => {
  for (const line of [
    't.setTimeout(240_000)',
    'test.setTimeout(TIMEOUT)',
    't.test(`a`, { skip, timeout }, async (t) => {})',
    "t.test('a', { skip: find() ?? false, timeout: 60_000 }, run)",
    "spawnSync('a', [], { timeout: 5000 })",
    'const options = { env, timeout: BUILD_LIMIT }',
    'const signal = AbortSignal.timeout(30_000)',
    'const signal = AbortSignal.timeout(ANSWER_MS)',
    'page.setDefaultTimeout(10_000)',
    'context.setDefaultNavigationTimeout(PAGE_MS)',
    'request.setTimeout(20_000, stop)',
    "const timer = setTimeout(() => reject(new Error('late')), 10_000)",
    'setTimeout(() => socket.destroy(new Error(text)), ANSWER_MS)',
    'while (performance.now() < deadline) await poll()',
    'if (Date.now() > this.deadlineMs) throw error',
    'if (timeoutAt <= Date.now()) throw error',
    'const deadline = performance.now() + 10_000',
    'const deadline = Date.now() + WAIT_MS',
    'const BOOT_LIMIT_MS = 120_000',
    'export const DEADLINE_MS = 120_000',
    'const INSTALL_TIMEOUT_SECONDS = 5 * 60',
    'const timeout = 280_000',
    "await waitUntil('a', () => isReady(1, 2), 30_000)",
    'await waitUntil(\n  `a`,\n  () => {\n    return [1, 2]\n  },\n  WAIT_MS,\n)',
    "await waitUntil('a', isReady, DEADLINE_MS + 40_000)",
    "await waitForState(id, 'running', 60_000)",
  ])
    t.equal(findProblems('test/a.ts', line).length > 0, true, line)
  t.match(findProblems('test/a.ts', "const a = '\\n'\n\nt.setTimeout(1)\n"), ['test/a.ts:3 "t.setTimeout("'])
})

t.test('the check accepts the scaled deadlines, and values that are the subject of a test', async (t) => {
  for (const line of [
    "await waitUntil('in 5, 6', () => isReady(1, 2))",
    "await waitUntil('a', () => isReady(1, 2), LONG_DEADLINE_MS)",
    'await waitUntil(\n  name,\n  isReady,\n  // The machine may reboot.\n  DEADLINE_MS,\n)',
    "await waitUntil('an event', hasEvent, waitMs)",
    'async function waitForState(id: string, state: State, ms = DEADLINE_MS) {}',
    "spawnSync('a', [], { timeout: DEADLINE_MS })",
    'const signal = AbortSignal.timeout(LONG_DEADLINE_MS)',
    'page.setDefaultTimeout(LONG_DEADLINE_MS)',
    'request.setTimeout(DEADLINE_MS, stop)',
    'type Options = { timeout: number }',
    "await exec('sleep 9', { timeoutSeconds: 1 })",
    'startTunnelServer({ probeTimeoutMs: 50 })',
    'const endsAt = performance.now() + minutes * 60_000',
    'await new Promise((resolve) => setTimeout(resolve, 50))',
    'setTimeout(() => socket.destroy(new Error(text)), DEADLINE_MS)',
    'const deadline = performance.now() + waitMs',
    't.equal(row.deadline, clock.now() + 5 * MINUTE_MS)',
    'const server = createServer({ keepAliveTimeout: 0 })',
    '// t.setTimeout(240_000)',
    "const script = 'test.setTimeout(5000)'",
  ])
    t.same(findProblems('test/a.ts', line), [], line)
})
