// Invalid input on several routes: each error names the field as the caller wrote it, and the rule it breaks.

import t from 'tap'
import { ERRORS, type ErrorCode } from '../../shared/errors.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { limitsEnv } from '../support/limits-env.ts'

/** Texts of the schema library and of JavaScript values that must not reach a client. */
const FORBIDDEN =
  /Invalid (input|string|option|key)|[Ee]xpected|[Rr]eceived|NaN|undefined|\/\^|Too (small|big)/

const NAME_RULE =
  'must be 1 to 32 lowercase letters, digits and hyphens, and start and end with a letter or digit'
const ENV_KEY_RULE = 'must start with a letter or underscore and contain only letters, digits and underscores'
const SURROGATE_RULE = 'must not contain an unpaired surrogate, which UTF-8 cannot encode'
const TTL_RULE = 'must be an integer between 5 and 43200'
const LIMIT_RULE = 'must be an integer between 1 and 200'
const NO_RATE_LIMIT = limitsEnv({ edgeRequestsPerSecond: 10_000, edgeConcurrency: 1000 })

type Case = [body: unknown, code: ErrorCode, message: string]

/** POST /boxes */
const CREATE_CASES: Case[] = [
  ['{', 'bad_request', 'body must be valid JSON'],
  ['[]', 'bad_request', 'body must be a JSON object'],
  ['null', 'bad_request', 'body must be a JSON object'],
  [{ name: 'Bad_Name' }, 'invalid_name', `name ${NAME_RULE}`],
  [{ name: 7 }, 'invalid_name', 'name must be a string'],
  [{ tier: 'huge' }, 'invalid_tier', 'tier must be one of nano, micro, lite, flow, pro, max, ultra'],
  [
    { region: 'mars' },
    'invalid_region',
    'region must be one of us-west-2, us-west-1, us-east-1, us-east-2, eu-central-1',
  ],
  [{ ttlMinutes: 4 }, 'invalid_pause_at', `ttlMinutes ${TTL_RULE}`],
  [{ ttlMinutes: 43_201 }, 'invalid_pause_at', `ttlMinutes ${TTL_RULE}`],
  [{ ttlMinutes: 5.5 }, 'invalid_pause_at', `ttlMinutes ${TTL_RULE}`],
  [{ ttlMinutes: '5' }, 'invalid_pause_at', `ttlMinutes ${TTL_RULE}`],
  [{ ttlMinutes: null }, 'invalid_pause_at', `ttlMinutes ${TTL_RULE}`],
  [{ autoPauseMin: 29 }, 'invalid_auto_pause', 'autoPauseMin must be an integer between 30 and 10080'],
  [{ restricted: 'yes' }, 'bad_request', 'restricted must be true or false'],
  [{ env: [] }, 'invalid_env', 'env must be a JSON object'],
  [{ env: { A: 1 } }, 'invalid_env', 'env.A must be a string'],
  [{ env: { A: '\0' } }, 'invalid_env', 'env.A must not contain a NUL byte'],
  [{ env: { '1A': '' } }, 'invalid_env', `env key "1A" ${ENV_KEY_RULE}`],
  ['{"env":{"__proto__":""}}', 'bad_request', 'env must not have a field named __proto__'],
  [{ env: { A: '\ud800' } }, 'bad_request', `env.A ${SURROGATE_RULE}`],
  [{ env: { '\udc00': '' } }, 'bad_request', `a field name in env ${SURROGATE_RULE}`],
  [
    { env: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`A${i}`, ''])) },
    'invalid_env',
    `env must be a JSON object of at most 100 variables with string values. A name ${ENV_KEY_RULE}`,
  ],
]

/** POST /exec */
const EXEC_CASES: Case[] = [
  ['"ls"', 'invalid_request', 'body must be a JSON object'],
  [{}, 'invalid_request', 'command is required'],
  [{ command: ' ' }, 'invalid_request', 'command must not be empty'],
  [
    { command: 'ls', timeoutSeconds: 0 },
    'invalid_timeout',
    'timeoutSeconds must be a number between 1 and 600',
  ],
  [{ command: 'ls', env: { A: null } }, 'invalid_request', 'env.A must be a string'],
  [{ command: 'ls \udc00' }, 'invalid_request', `command ${SURROGATE_RULE}`],
  [{ command: 'ls', cwd: '\ud800' }, 'invalid_request', `cwd ${SURROGATE_RULE}`],
  [{ command: 'ls', env: { A: '\ud800' } }, 'invalid_request', `env.A ${SURROGATE_RULE}`],
  [{ command: 'ls', env: { '1A': '' } }, 'invalid_request', `env key "1A" ${ENV_KEY_RULE}`],
]

/** PUT /files */
const WRITE_CASES: Case[] = [
  [{ content: '' }, 'invalid_path', 'path is required'],
  [{}, 'invalid_path', 'path is required'],
  [{ path: 'a' }, 'invalid_request', 'content is required'],
  [{ path: '\ud800', content: '' }, 'invalid_request', `path ${SURROGATE_RULE}`],
  [{ path: 'a', content: '\ud800' }, 'invalid_request', `content ${SURROGATE_RULE}`],
  [{ path: 'a', content: '', mode: 'rw' }, 'invalid_request', 'mode must be an octal string such as 0644'],
  [{ path: 'a', content: '', encoding: 'hex' }, 'invalid_request', 'encoding must be one of utf8, base64'],
]

/** GET requests: path → error. */
const QUERY_CASES: (readonly [path: string, code: ErrorCode, message: string])[] = [
  ['/boxes?live=yes', 'bad_request', 'live must be 1 or 0'],
  ['/boxes?live=1&live=0', 'bad_request', 'live must be given only once'],
  ['/boxes/ID/commands?limit=0', 'bad_request', `limit ${LIMIT_RULE}`],
  ['/boxes/ID/commands?limit=201', 'bad_request', `limit ${LIMIT_RULE}`],
  ['/boxes/ID/commands?limit=1.5', 'bad_request', `limit ${LIMIT_RULE}`],
  ['/boxes/ID/commands?limit=abc', 'bad_request', `limit ${LIMIT_RULE}`],
  ['/boxes/ID/commands?limit=', 'bad_request', `limit ${LIMIT_RULE}`],
  ...['0x10', '1e2', '5.0', '%2B5', '%205'].map(
    (limit) => [`/boxes/ID/commands?limit=${limit}`, 'bad_request', `limit ${LIMIT_RULE}`] as const,
  ),
  ['/boxes/ID/commands?mode=x', 'bad_request', 'mode must be one of sync, detached'],
  ['/boxes/ID/commands?before=', 'invalid_cursor', 'before must not be empty'],
  ['/boxes/ID/commands?before=x', 'invalid_cursor', 'before must be the nextBefore of the previous page'],
  ['/boxes/ID/commands/p_0/output?offset=', 'bad_request', 'offset must be a non-negative integer'],
  ['/boxes/ID/commands/p_0/output?offset=0x10', 'bad_request', 'offset must be a non-negative integer'],
  ['/boxes/ID/commands/p_0/output?offset=1e3', 'bad_request', 'offset must be a non-negative integer'],
  [
    '/boxes/ID/commands/p_0/output?offset=9007199254740993',
    'bad_request',
    'offset must be a non-negative integer',
  ],
  ['/boxes/ID/commands/p_0/output?offset=-1', 'bad_request', 'offset must be a non-negative integer'],
  [
    '/boxes/apple',
    'not_found',
    'No such box: apple. This route needs the id of the box: GET /api/v1/boxes lists names and ids.',
  ],
  ['/nothing', 'not_found', 'This route does not exist. The API reference is at /docs.'],
]

t.test('describes invalid input in plain sentences', async (t) => {
  const { send, api } = await startTestCoordinator(t, { env: NO_RATE_LIMIT })
  const [{ id, hostname }] = (await api('GET', '/boxes')).json.boxes
  const edge = `/v1/box/${hostname}`
  const requests = [
    ...CREATE_CASES.map(([body, ...error]) => ['POST', '/api/v1/boxes', body, ...error] as const),
    ...EXEC_CASES.map(([body, ...error]) => ['POST', `${edge}/exec`, body, ...error] as const),
    ...WRITE_CASES.map(([body, ...error]) => ['PUT', `${edge}/files`, body, ...error] as const),
    ...QUERY_CASES.map(
      ([path, ...error]) => ['GET', `/api/v1${path.replace('ID', id)}`, undefined, ...error] as const,
    ),
    ...['', '0x10', '1e2'].map(
      (tail) =>
        [
          'GET',
          `${edge}/exec/p_${'0'.repeat(24)}?tail=${tail}`,
          undefined,
          'invalid_request',
          'tail must be an integer between 0 and 1048576',
        ] as const,
    ),
    ['GET', `${edge}/files`, undefined, 'invalid_path', 'path is required'] as const,
    [
      'GET',
      `${edge}/files?path=a&path=b`,
      undefined,
      'invalid_path',
      'path must be given only once',
    ] as const,
  ]
  for (const [method, path, body, code, message] of requests) {
    const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
    const { status, json, text } = await send(method, path, body, { headers })
    const name = `${method} ${path} ${JSON.stringify(body)}`
    t.equal(status, ERRORS[code][0], name)
    t.same(
      path.startsWith(edge) ? json.error : { code: json.error, message: json.message },
      { code, message },
      name,
    )
    t.notMatch(text, FORBIDDEN, name)
  }
})

t.test('never sends a text of the schema library, whatever the type of a field', async (t) => {
  const { api, edge } = await startTestCoordinator(t, { env: NO_RATE_LIMIT })
  const [{ id, hostname }] = (await api('GET', '/boxes')).json.boxes
  const values = [null, true, -1, 1.5, 1e300, '', ' ', '\0', 'x'.repeat(300), [], [1], {}, { a: {} }]
  // Each body has another invalid field, so that a valid value of the tested field does not create a box or run a command.
  for (const value of values) {
    for (const field of ['name', 'tier', 'region', 'ttlMinutes', 'autoPauseMin', 'env', 'restricted']) {
      const { status, text } = await api('POST', '/boxes', { fromTemplate: 1, [field]: value })
      t.equal(status, 400, `${field}: ${JSON.stringify(value)}`)
      t.notMatch(text, FORBIDDEN)
    }
    for (const field of ['command', 'cwd', 'timeoutSeconds', 'env', 'detached']) {
      const body = { command: '', env: { '1A': '' }, [field]: value }
      const { status, text } = await edge(hostname, 'POST', '/exec', body)
      t.equal(status, 400, `${field}: ${JSON.stringify(value)}`)
      t.notMatch(text, FORBIDDEN)
    }
    for (const parameter of ['limit', 'before', 'mode', 'status']) {
      const path = `/boxes/${id}/commands?${parameter}=${encodeURIComponent(String(value))}`
      t.notMatch((await api('GET', path)).text, FORBIDDEN, path)
    }
  }
})
