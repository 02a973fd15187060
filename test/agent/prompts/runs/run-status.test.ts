// The status of a run: interrupt request, time limit, last final event. Exit status 0 alone is no success.
import t from 'tap'
import type { ProcessExit } from '../../../../agent/exec/detached/types.ts'
import {
  INITIAL_MAPPER_STATE,
  type MapperState,
  type Outcome,
} from '../../../../agent/prompts/providers/types.ts'
import { type RunEnd, resolveStatus, STOPPED_MESSAGE } from '../../../../agent/prompts/runs/run-status.ts'

const FINISHED_AT = 1000
const exit = (fields: Partial<ProcessExit>): ProcessExit => ({
  status: 'exited',
  exitCode: null,
  signal: null,
  finishedAt: FINISHED_AT,
  ...fields,
})
const EXITS = {
  zero: exit({ exitCode: 0 }),
  one: exit({ exitCode: 1 }),
  killed: exit({ status: 'killed', signal: 'KILL' }),
  timedOut: exit({ status: 'timed_out', signal: 'TERM' }),
  terminated: exit({ status: 'killed', exitCode: null, signal: 'TERM' }),
  exitedOnTerm: exit({ exitCode: 143 }),
  lost: exit({ status: 'lost', finishedAt: null }),
}
const DONE: Outcome = { status: 'done' }
const FAILED: Outcome = { status: 'failed', message: 'no credit' }
const state = (outcome: Outcome | null, hasContent = false): MapperState => ({
  ...INITIAL_MAPPER_STATE,
  outcome,
  hasContent,
})
const interruptAt = (requestedAt: number) => ({ requestedAt, cause: 'Interrupted.' })
const done = { status: 'done', error: null }
const failed = (error: string) => ({ status: 'failed', error })
const interrupted = (error = 'Interrupted.') => ({ status: 'interrupted', error })
const NO_RESULT = failed('The coding agent ended without a result.')
const TIME_LIMIT = failed('The run exceeded its time limit of 360 minutes.')

const base: RunEnd = {
  conclusion: null,
  exit: EXITS.zero,
  interrupt: null,
  stopRequestedAt: null,
  state: state(null),
  unfinished: null,
  stderr: '',
  minutes: 360,
}

const TABLE: [string, Partial<RunEnd>, object][] = [
  ['done and exit status 0', { state: state(DONE) }, done],
  ['done, whatever the exit status', { state: state(DONE), exit: EXITS.one }, done],
  ['done, then killed from outside', { state: state(DONE), exit: EXITS.killed }, done],
  ['failed, although exit status 0', { state: state(FAILED) }, failed('no credit')],
  ['failed, with content', { state: state(FAILED, true) }, failed('no credit')],
  ['no final event: the provider decides', { unfinished: DONE }, done],
  [
    'no final event: the provider decides',
    { unfinished: FAILED, state: state(null, true) },
    failed('no credit'),
  ],
  ['a final event comes before the provider', { state: state(DONE), unfinished: FAILED }, done],
  ['exit status 0 with content', { state: state(null, true) }, NO_RESULT],
  ['exit status 0 without content', {}, NO_RESULT],
  [
    'exit status 0 and an error message',
    { stderr: 'other directory\n' },
    failed('The coding agent ended without a result.\nother directory'),
  ],
  ['another turn after a success', { state: { ...state(DONE, true), isContinued: true } }, NO_RESULT],
  [
    'another turn after a failure',
    { state: { ...state(FAILED, true), isContinued: true } },
    failed('no credit'),
  ],
  ['the final line was omitted', { state: { ...state(null, true), isLastLineOmitted: true } }, done],
  ['the only line was omitted', { state: { ...state(null), isLastLineOmitted: true } }, NO_RESULT],
  ['terminated after a success', { conclusion: DONE, state: state(FAILED), exit: EXITS.killed }, done],
  ['terminated after a failure', { conclusion: FAILED, exit: EXITS.zero }, failed('no credit')],
  [
    'terminated after a success, then interrupted',
    { conclusion: DONE, interrupt: interruptAt(999), exit: EXITS.killed },
    done,
  ],
  [
    'exit status 1 with content',
    { exit: EXITS.one, state: state(null, true), stderr: '\x1b[31mbad key\x1b[0m\n' },
    failed('bad key'),
  ],
  [
    'exit status 1',
    { exit: EXITS.one },
    failed('The coding agent exited with status 1 and without an error message.'),
  ],
  [
    'killed from outside',
    { exit: EXITS.killed, state: state(null, true) },
    failed('The coding agent was terminated by signal KILL.'),
  ],
  ['killed from outside', { exit: EXITS.killed, stderr: 'out of memory' }, failed('out of memory')],
  ['interrupted', { interrupt: interruptAt(999), exit: EXITS.killed }, interrupted()],
  ['interrupted, although done', { interrupt: interruptAt(999), state: state(DONE) }, interrupted()],
  ['interrupted, then the box stopped', { interrupt: interruptAt(999), exit: EXITS.lost }, interrupted()],
  ['interrupted before the time limit', { interrupt: interruptAt(999), exit: EXITS.timedOut }, interrupted()],
  ['exited before the interrupt', { interrupt: interruptAt(1001), state: state(DONE) }, done],
  [
    'exited before the interrupt',
    { interrupt: interruptAt(1001), state: state(FAILED) },
    failed('no credit'),
  ],
  ['time limit', { exit: EXITS.timedOut, state: state(null, true) }, TIME_LIMIT],
  ['time limit, although done', { exit: EXITS.timedOut, state: state(DONE) }, TIME_LIMIT],
  [
    'time limit of a minute',
    { exit: EXITS.timedOut, minutes: 1 },
    failed('The run exceeded its time limit of 1 minute.'),
  ],
  ['lost', { exit: EXITS.lost, state: state(null, true) }, failed(STOPPED_MESSAGE)],
  ['lost after the final event', { exit: EXITS.lost, state: state(DONE) }, done],
  ['lost after an error', { exit: EXITS.lost, state: state(FAILED) }, failed('no credit')],
  ['the box stops', { stopRequestedAt: 999, exit: EXITS.killed }, interrupted(STOPPED_MESSAGE)],
  [
    'the box stops after an error',
    { stopRequestedAt: 999, state: state(FAILED) },
    interrupted(STOPPED_MESSAGE),
  ],
  [
    'the box stops, and the run is lost',
    { stopRequestedAt: 999, exit: EXITS.lost },
    interrupted(STOPPED_MESSAGE),
  ],
  ['the box stops after the run was done', { stopRequestedAt: 999, state: state(DONE) }, done],
  ['the box stops', { stopRequestedAt: 1999, exit: EXITS.terminated }, interrupted(STOPPED_MESSAGE)],
  ['the box stops', { stopRequestedAt: 1999, exit: EXITS.exitedOnTerm }, interrupted(STOPPED_MESSAGE)],
  [
    'terminated long before the box stops',
    { stopRequestedAt: 2001, exit: EXITS.terminated },
    failed('The coding agent was terminated by signal TERM.'),
  ],
  ['time limit, then the box stops', { stopRequestedAt: 1001, exit: EXITS.timedOut }, TIME_LIMIT],
  [
    'the run ended before the box stops',
    { stopRequestedAt: 1001, state: state(FAILED) },
    failed('no credit'),
  ],
]

for (const [name, fields, expected] of TABLE)
  t.test(name, async (t) => t.same(resolveStatus({ ...base, ...fields }), expected))

t.test('the error is bounded', async (t) => {
  const { error } = resolveStatus({ ...base, exit: EXITS.one, stderr: 'x'.repeat(100_000) })
  t.equal(error?.length, 4096)
})
