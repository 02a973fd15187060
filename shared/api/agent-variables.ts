// Schemas of PUT /environment of the agent.
import * as z from 'zod'

/**
 * PUT /environment of the agent: the variables of the box, for the readiness of its coding agents, and what its listener for
 * secrets needs.
 */
export const agentVariablesSchema = z.object({
  env: z.record(z.string(), z.string()),
  /** null: no secret is mounted. */
  broker: z
    .object({
      /** PEM: the certificate authority of the workspace. */
      certificate: z.string(),
      /** The hosts of the mounted secrets, as SecretHost patterns: connections to port 443 of these go to the coordinator. */
      hosts: z.array(z.string()),
    })
    .nullable(),
  /** The paths of the secret files of environments. */
  secretFiles: z.array(z.string()),
})
/** The response, since the agent has the listener. state: whether the test request of the agent has reached the coordinator. */
export const agentVariablesResponseSchema = z.object({
  broker: z
    .object({ state: z.enum(['ready', 'failed']), message: z.string().max(1024).nullable() })
    .nullish(),
})
export type AgentVariables = z.infer<typeof agentVariablesSchema>
export type AgentBroker = NonNullable<AgentVariables['broker']>
export type AgentVariablesResponse = z.infer<typeof agentVariablesResponseSchema>
