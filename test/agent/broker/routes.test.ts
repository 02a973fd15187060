// PUT /environment of the agent.
import t from 'tap'
import { brokerRoutes } from '../../../agent/broker/routes.ts'
import { createJsonRouter } from '../../../agent/requests/json-routes.ts'
import type { AgentBroker } from '../../../shared/api/agent-variables.ts'
import { callRoute } from '../../support/agent-routes.ts'

t.test('the variables of the box, and the hosts of its secrets', async (t) => {
  const environments: Record<string, string>[] = []
  const contents: (AgentBroker | null)[] = []
  const detector = { setBoxVariables: (env: Record<string, string>) => void environments.push(env) }
  const broker = {
    async update(content: AgentBroker | null) {
      contents.push(content)
      return content === null ? null : ({ state: 'ready', message: null } as const)
    },
  }
  const secretFiles: (readonly string[])[] = []
  const credentialFiles = { setSecretFiles: (paths: readonly string[]) => void secretFiles.push(paths) }
  const deps = { detector, broker, credentialFiles }
  const router = createJsonRouter()
  brokerRoutes(router, deps)
  const put = async (body: unknown) => {
    const { text } = await callRoute(router, { method: 'PUT', path: '/environment', body })
    return JSON.parse(text)
  }

  t.same(await put({ env: { A: 'x', B: '' }, broker: null, secretFiles: [] }), { broker: null })
  const secrets = { certificate: 'PEM', hosts: ['*.example.com'] }
  t.same(await put({ env: {}, broker: secrets, secretFiles: ['~/.npmrc'] }), {
    broker: { state: 'ready', message: null },
  })
  const own = { env: { https_proxy: 'http://proxy:1' }, broker: secrets, secretFiles: [] }
  t.match(await put(own), { broker: { state: 'failed', message: /its own variable https_proxy/ } })
  t.same(environments, [{ A: 'x', B: '' }, {}, own.env])
  t.same(secretFiles, [[], ['~/.npmrc'], []])
  t.same(contents, [null, secrets, secrets])
  for (const env of [undefined, [], { 'NOT VALID': '' }, { A: 1 }, { A: 'x\0' }])
    t.match(
      await put({ env, broker: null, secretFiles: [] }),
      { error: { code: 'invalid_request' } },
      JSON.stringify(env),
    )
  t.equal(environments.length, 3)
})
