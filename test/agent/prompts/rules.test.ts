// The table of spec §4.16: what a prompt means in each situation of the box.
import t from 'tap'
import {
  admit,
  type Choice,
  type ConversationFacts,
  type PromptLimits,
  selectConversation,
  selectNext,
} from '../../../agent/prompts/rules.ts'
import { ApiError } from '../../../shared/errors.ts'

const conversation = (
  id: string,
  provider: ConversationFacts['provider'] = 'claude',
  sessionId: string | null = `session of ${id}`,
): ConversationFacts => ({ id, provider, sessionId, cwd: '~' })
const run = (id: string, conversationId: string, provider: ConversationFacts['provider'] = 'claude') => ({
  id,
  conversationId,
  provider,
})

// Most recently active first: pi has a conversation without a session only.
const CONVERSATIONS = [
  conversation('recent'),
  conversation('older'),
  conversation('of-codex', 'codex'),
  conversation('without-session', 'pi', null),
]
const LIMITS: PromptLimits = { runs: 4, conversations: 200, queued: 100 }
const BUSY = ['busy-1', 'busy-2', 'busy-3', 'busy-4']

const SITUATIONS = {
  idle: { inProgress: [], queue: [] },
  /** A run of the provider of the requests, in its most recent conversation. */
  same: { inProgress: [run('run-1', 'recent')], queue: [] },
  other: { inProgress: [run('run-2', 'of-codex', 'codex')], queue: [] },
  limit: { inProgress: BUSY.map((id) => run(`run-of-${id}`, id, 'opencode')), queue: [] },
  full: {
    inProgress: BUSY.map((id) => run(`run-of-${id}`, id, 'opencode')),
    queue: Array.from({ length: 100 }, (_, index) => ({ id: `queued-${index}`, conversationId: 'busy-1' })),
  },
} as const
type SituationName = keyof typeof SITUATIONS

const REQUESTS = {
  none: {},
  queue: { queue: true },
  new: { new: true },
  'new+queue': { new: true, queue: true },
  continue: { continue: true },
  'continue+queue': { continue: true, queue: true },
  conversationId: { conversationId: 'recent' },
  'conversationId+queue': { conversationId: 'recent', queue: true },
  'older conversationId': { conversationId: 'older' },
  'older conversationId+queue': { conversationId: 'older', queue: true },
  'unknown id': { conversationId: 'cv_none' },
  'unknown id+queue': { conversationId: 'cv_none', queue: true },
  'of another provider': { conversationId: 'of-codex' },
  'of another provider+queue': { conversationId: 'of-codex', queue: true },
  'continue without a session': { provider: 'pi', continue: true },
  'continue without a session+queue': { provider: 'pi', continue: true, queue: true },
  'new and continue': { new: true, continue: true },
  'new and conversationId': { new: true, conversationId: 'recent' },
  'continue and conversationId': { continue: true, conversationId: 'recent', queue: true },
  'all false': { new: false, continue: false, queue: false },
} as const satisfies Record<string, Partial<Choice>>

const NEW = 'start in a new conversation'
const inRecent = 'start in recent'
const PROGRESS = 'prompt_in_progress'
const LIMIT = 'prompt_limit_reached'
const everywhere = (outcome: string): Record<SituationName, string> => ({
  idle: outcome,
  same: outcome,
  other: outcome,
  limit: outcome,
  full: outcome,
})
/** queue: behind which run. */
const newBehind = (id: string) => `queue behind ${id} in a new conversation`
const OLDEST = 'run-of-busy-4'

const EXPECTED: Record<keyof typeof REQUESTS, Record<SituationName, string>> = {
  none: { idle: NEW, same: PROGRESS, other: PROGRESS, limit: PROGRESS, full: PROGRESS },
  'all false': { idle: NEW, same: PROGRESS, other: PROGRESS, limit: PROGRESS, full: PROGRESS },
  queue: {
    idle: NEW,
    same: 'queue behind run-1 in recent',
    other: NEW,
    limit: newBehind(OLDEST),
    full: LIMIT,
  },
  new: { idle: NEW, same: NEW, other: NEW, limit: LIMIT, full: LIMIT },
  'new+queue': { idle: NEW, same: NEW, other: NEW, limit: newBehind(OLDEST), full: LIMIT },
  continue: { idle: inRecent, same: PROGRESS, other: inRecent, limit: LIMIT, full: LIMIT },
  'continue+queue': {
    idle: inRecent,
    same: 'queue behind run-1 in recent',
    other: inRecent,
    limit: `queue behind ${OLDEST} in recent`,
    full: LIMIT,
  },
  conversationId: { idle: inRecent, same: PROGRESS, other: inRecent, limit: LIMIT, full: LIMIT },
  'conversationId+queue': {
    idle: inRecent,
    same: 'queue behind run-1 in recent',
    other: inRecent,
    limit: `queue behind ${OLDEST} in recent`,
    full: LIMIT,
  },
  // Beside the run of another conversation.
  'older conversationId': {
    idle: 'start in older',
    same: 'start in older',
    other: 'start in older',
    limit: LIMIT,
    full: LIMIT,
  },
  'older conversationId+queue': {
    idle: 'start in older',
    same: 'start in older',
    other: 'start in older',
    limit: `queue behind ${OLDEST} in older`,
    full: LIMIT,
  },
  'unknown id': everywhere('not_found'),
  'unknown id+queue': everywhere('not_found'),
  'of another provider': everywhere('provider_mismatch'),
  'of another provider+queue': everywhere('provider_mismatch'),
  'continue without a session': everywhere('no_session_to_continue'),
  'continue without a session+queue': everywhere('no_session_to_continue'),
  'new and continue': everywhere('invalid_request'),
  'new and conversationId': everywhere('invalid_request'),
  'continue and conversationId': everywhere('invalid_request'),
}

type Facts = Parameters<typeof admit>[2]
function decide(request: Partial<Choice>, facts: Partial<Facts> = {}): string {
  const choice: Choice = { provider: 'claude', ...request }
  const situation = {
    home: '/home/box',
    conversations: CONVERSATIONS,
    inProgress: [],
    queue: [],
    limits: LIMITS,
    ...facts,
  }
  try {
    const selected = selectConversation(choice, situation)
    const admission = admit(choice, selected, situation)
    const where = selected === null ? 'a new conversation' : selected.id
    return admission.action === 'start' ? `start in ${where}` : `queue behind ${admission.behind} in ${where}`
  } catch (error) {
    if (error instanceof ApiError) return error.code
    throw error
  }
}
function findError(request: Partial<Choice>, facts: Partial<Facts> = {}): ApiError {
  const choice: Choice = { provider: 'claude', ...request }
  const situation = {
    home: '/home/box',
    conversations: CONVERSATIONS,
    inProgress: [],
    queue: [],
    limits: LIMITS,
    ...facts,
  }
  try {
    admit(choice, selectConversation(choice, situation), situation)
  } catch (error) {
    if (error instanceof ApiError) return error
  }
  throw new Error('the request was accepted')
}

for (const [name, outcomes] of Object.entries(EXPECTED))
  for (const [situation, expected] of Object.entries(outcomes))
    t.test(`${name}, ${situation}: ${expected}`, async (t) => {
      const request = REQUESTS[name as keyof typeof REQUESTS]
      t.equal(decide(request, SITUATIONS[situation as SituationName]), expected)
    })

t.test('errors name what is in progress and what to do', async (t) => {
  const { same, limit, full } = SITUATIONS
  t.equal(
    findError({}, same).message,
    'Run run-1 of claude is in progress. Wait for it, interrupt it, or send queue or new.',
  )
  t.match(
    findError({ conversationId: 'recent' }, same).message,
    /^Run run-1 is in progress.* send queue or new/,
  )
  t.match(findError({ new: true }, limit).message, /4 runs in progress, its limit.*run-of-busy-4.*send queue/)
  t.match(findError({ queue: true }, full).message, /100 prompts wait/)
  t.match(findError({ conversationId: 'of-codex' }).message, /belongs to codex\. Send provider codex/)
  t.match(findError({ provider: 'pi', continue: true }).message, /^pi has no session.*Omit continue/)
  t.match(findError({ conversationId: 'x'.repeat(100_000) }).message, /^.{1,200}$/)
})

t.test('a queued prompt blocks its conversation', async (t) => {
  const queue = [{ id: 'queued-1', conversationId: 'recent' }]
  t.equal(decide({ conversationId: 'recent' }, { queue }), 'prompt_in_progress')
  t.match(
    findError({ conversationId: 'recent' }, { queue }).message,
    /^Prompt queued-1 is queued in conversation/,
  )
  t.equal(decide({ conversationId: 'recent', queue: true }, { queue }), 'queue behind null in recent')
  t.equal(decide({ conversationId: 'older' }, { queue }), 'start in older')
})

t.test('continue includes a run in progress that has no session yet', async (t) => {
  const inProgress = [run('run-1', 'without-session', 'pi')]
  t.equal(decide({ provider: 'pi', continue: true }, { inProgress }), 'prompt_in_progress')
  t.equal(
    decide({ provider: 'pi', continue: true, queue: true }, { inProgress }),
    'queue behind run-1 in without-session',
  )
})

t.test('queue follows the newest run of the provider', async (t) => {
  const inProgress = [run('run-3', 'of-codex', 'codex'), run('run-2', 'older'), run('run-1', 'recent')]
  t.equal(decide({ queue: true }, { inProgress }), 'queue behind run-2 in older')
})

t.test('a conversation keeps its directory', async (t) => {
  const at = (cwd: string) => ({ conversations: [{ ...conversation('recent'), cwd }] })
  for (const [cwd, given] of [
    ['~', '~'],
    ['~', '/home/box'],
    ['~', ''],
    ['project', '~/project/'],
    ['/srv', '/srv/x/..'],
  ] as const)
    t.equal(decide({ continue: true, cwd: given }, at(cwd)), 'start in recent', `${given} is ${cwd}`)
  t.equal(decide({ continue: true, cwd: '~/other' }, at('~/project')), 'invalid_request')
  t.match(
    findError({ continue: true, cwd: '~/other' }, at('~/project')).message,
    /conversation recent: ~\/project\. Omit cwd, or send new/,
  )
  t.equal(decide({ queue: true, cwd: '/srv' }, SITUATIONS.same), 'invalid_request')
  t.equal(decide({ new: true, cwd: `/${'x'.repeat(4095)}` }), 'invalid_path')
})

t.test(
  'a new conversation needs one that can be deleted when the box is full of conversations',
  async (t) => {
    const limits = { ...LIMITS, conversations: 4, runs: 64 }
    const all = CONVERSATIONS.map(({ id, provider }) => run(`run-of-${id}`, id, provider))
    t.equal(decide({ new: true }, { limits, inProgress: all }), 'prompt_limit_reached')
    t.match(findError({ new: true }, { limits, inProgress: all }).message, /All 4 conversations/)
    t.equal(decide({ new: true }, { limits, inProgress: all.slice(1) }), 'start in a new conversation')
  },
)

t.test('the oldest queued prompt whose conversation is idle starts next', async (t) => {
  const queue = [
    { id: '1', conversationId: 'a' },
    { id: '2', conversationId: 'a' },
    { id: '3', conversationId: 'b' },
  ]
  t.equal(selectNext(queue, [])?.id, '1')
  t.equal(selectNext(queue, [{ conversationId: 'a' }])?.id, '3')
  t.equal(selectNext(queue, [{ conversationId: 'a' }, { conversationId: 'b' }]), null)
  t.equal(selectNext([], []), null)
})
