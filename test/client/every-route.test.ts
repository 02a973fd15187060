// Each route of the API has a method, which calls this route with its arguments in the right places.
import t from 'tap'
import { Boxwood, BoxwoodError } from '../../client/exports.ts'
import type { Socket } from '../../client/http/socket.ts'
import { startCliCoordinator } from '../cli/coordinator.ts'

type Operation = {
  operationId: string
  parameters?: unknown[]
  requestBody?: { content: Record<string, unknown> }
  responses: Record<string, { 'x-error-codes'?: string[]; $ref?: string }>
}
type Method = (...args: unknown[]) => Promise<unknown>

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { api, url, key, requests } = coordinator
const boxwood = new Boxwood({ url, apiKey: key, retryMs: 0 })
const { json: document } = await coordinator.send('GET', '/openapi.json', undefined, { key: null })
const [box] = (await api('GET', '/boxes?live=1')).json.boxes

/** Valid values that exist nowhere, apart from the box. */
const VALUES: Record<string, unknown> = {
  box: 'fig',
  port: 3000,
  processId: `p_${'0'.repeat(24)}`,
  runId: `run_${'0'.repeat(24)}`,
  name: 'NAME',
  session: 'main',
  token: 'a/b?c',
}
const OTHER_ID = '00000000-0000-4000-8000-000000000000'

const operations: { method: string; path: string; operation: Operation }[] = Object.entries(
  document.paths as Record<string, Record<string, Operation>>,
).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
)
t.ok(operations.length > 160, `${operations.length} operations`)

for (const { method, path, operation } of operations)
  t.test(operation.operationId, async (t) => {
    const [group = '', name = ''] = operation.operationId.split('.')
    const routes = boxwood.routes as unknown as Record<string, Record<string, Method>>
    const call = routes[group]?.[name]
    t.type(call, 'function')
    const values = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter = '']) => {
      const isBox = parameter === 'id' && path.startsWith('/api/v1/boxes/') && method === 'GET'
      return isBox ? box.id : (VALUES[parameter] ?? OTHER_ID)
    })
    const first = requests.length
    const isSocket = operation.responses['101'] !== undefined
    const handlers = { onMessage: () => undefined, onClose: () => undefined }
    const error = await call?.(...values, ...(isSocket ? [handlers] : []), {}, {}, {}).then(
      (result) => {
        if (isSocket) (result as Socket).close()
        return null
      },
      (rejection: unknown) => rejection,
    )
    if (error !== null) t.ok(error instanceof BoxwoodError, String(error))
    const segments = [...values]
    const expected = path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(String(segments.shift())))
    const lines = requests.slice(first).map(({ line }) => line.replace(/\?.*$/, ''))
    t.ok(lines.includes(`${method} ${expected}`), `${method} ${expected} of ${lines.join(', ')}`)
  })
