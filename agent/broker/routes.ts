// PUT /environment: the variables of the box, for the readiness of its coding agents, the hosts of its secrets, and the paths of
// its secret files.
import { type AgentVariablesResponse, agentVariablesSchema } from '../../shared/api/agent-variables.ts'
import { assertEnvironment } from '../exec/environment.ts'
import type { CredentialFiles } from '../files/credential-files.ts'
import type { ProviderDetector } from '../prompts/types.ts'
import type { JsonRouter } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import type { Broker } from './broker.ts'

export type BrokerDeps = {
  detector: Pick<ProviderDetector, 'setBoxVariables'>
  broker: Pick<Broker, 'update'>
  credentialFiles: Pick<CredentialFiles, 'setSecretFiles'>
}

export function brokerRoutes(router: JsonRouter, { detector, broker, credentialFiles }: BrokerDeps): void {
  router.add('PUT', '/environment', async ({ body }): Promise<AgentVariablesResponse> => {
    const { env, broker: content, secretFiles } = validateRequest(agentVariablesSchema, body)
    credentialFiles.setSecretFiles(secretFiles)
    assertEnvironment(env)
    detector.setBoxVariables(env)
    const result = await broker.update(content)
    const proxy = ['HTTPS_PROXY', 'https_proxy'].find((name) => env[name] !== undefined)
    if (result?.state !== 'ready' || proxy === undefined) return { broker: result }
    const message = `The programs of the box use its own variable ${proxy} in place of the proxy for secrets. Remove the variable.`
    return { broker: { state: 'failed', message } }
  })
}
