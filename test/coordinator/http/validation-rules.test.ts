// Every rule of a request has a message that names it: an invalid field never gets "is not valid".
import t from 'tap'
import { z } from 'zod'
import type { Route } from '../../../coordinator/http/route.ts'
import { formatField, validationMessage } from '../../../shared/validation-message.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'

type Check = z.core.$ZodCheck
type OnCheck = (check: Check, path: readonly PropertyKey[]) => void

/** Calls back for the checks of a schema and of its parts. */
function forEachCheck(schema: z.core.$ZodType, onCheck: OnCheck, path: readonly PropertyKey[] = []): void {
  const def = schema._zod.def as z.core.$ZodTypeDef & Record<string, unknown>
  for (const check of def.checks ?? []) onCheck(check, path)
  const isSchema = (value: unknown): value is z.core.$ZodType =>
    typeof value === 'object' && value !== null && '_zod' in value && 'def' in (value._zod as object)
  if (def.type === 'object')
    for (const [key, field] of Object.entries(def.shape as Record<string, z.core.$ZodType>))
      forEachCheck(field, onCheck, [...path, key])
  for (const name of ['innerType', 'element', 'keyType', 'valueType', 'in', 'out', 'left', 'right'])
    if (isSchema(def[name])) forEachCheck(def[name], onCheck, path)
  for (const name of ['options', 'items'])
    for (const part of Array.isArray(def[name]) ? def[name] : []) forEachCheck(part, onCheck, path)
}

/** What the client reads when the check fails; null: the check is described by its own values, such as a maximum. */
function describeFailure(check: Check): string | null {
  const { check: kind, error, format } = check._zod.def as z.core.$ZodCheckDef & { format?: string }
  if (kind !== 'custom' && kind !== 'string_format') return null
  const code = kind === 'custom' ? 'custom' : 'invalid_format'
  const issue = { code, format, path: ['field'], input: '' }
  const described = error?.(issue as never)
  const message = typeof described === 'string' ? described : (described?.message ?? 'Invalid input')
  return validationMessage([{ ...issue, message } as never])
}

/** A check that a transform runs reports its own issue. */
const UNNAMED = /is not valid|does not have the required form/

t.test('a rule without a message is found', async (t) => {
  const found: string[] = []
  const schema = z.object({
    a: z.array(z.string().refine((text) => text !== '')).optional(),
    b: z.record(z.string().regex(/a/), z.string().regex(/a/, 'must be a')),
    c: z.union([z.string().max(1), z.uuid()]),
  })
  forEachCheck(schema, (check, path) => {
    if (UNNAMED.test(describeFailure(check) ?? '')) found.push(formatField(path, 'body'))
  })
  t.same(found, ['a', 'b'])
})

t.test('every refinement of a query and of a body names its rule', async (t) => {
  const { modules } = (await startTestCoordinator(t)).instance.context
  const routes: Route[] = [
    ...modules.collect(({ routes }) => routes),
    ...modules.collect(({ edgeRoutes }) => edgeRoutes),
    ...modules.collect(({ agentRoutes }) => agentRoutes),
  ]
  t.ok(routes.length > 100)
  const problems = new Set<string>()
  let checks = 0
  // A malformed id in a path is not found.
  for (const { method, path: route, request } of routes)
    for (const part of ['query', 'body'] as const)
      if (request?.[part])
        forEachCheck(request[part], (check, path) => {
          checks += 1
          const text = describeFailure(check)
          if (text !== null && UNNAMED.test(text))
            problems.add(`${method} ${route}: ${formatField(path, part)}: ${text}`)
        })
  t.ok(checks > 100, `${checks} checks`)
  t.same([...problems], [])
})
