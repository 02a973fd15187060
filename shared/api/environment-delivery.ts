// What the coordinator sends to the agent of a box for its environment: files and repositories. Responses are untrusted.
import * as z from 'zod'
import { LIMITS } from '../limits.ts'

/** PUT /environment-files of the agent. Paths start with `/`, or with `~/` for the home directory of the box. */
export const agentFilesRequestSchema = z.object({
  write: z
    .array(z.object({ path: z.string(), mode: z.string(), contentBase64: z.string() }))
    .max(LIMITS.environmentFiles),
  /** Removed before files are written. A missing file is no failure. */
  remove: z.array(z.string()).max(3 * LIMITS.environmentFiles),
})
export type AgentFilesRequest = z.infer<typeof agentFilesRequestSchema>

/** The files that could not be written or removed. The other ones are on the disk. */
export const agentFilesResponseSchema = z.object({
  failed: z
    .array(z.object({ path: z.string().max(1024), message: z.string().max(4096) }))
    .max(4 * LIMITS.environmentFiles),
})
export type AgentFilesResponse = z.infer<typeof agentFilesResponseSchema>

/** PUT /environment-repos of the agent. Responds when the repository is there, or could not be cloned or updated. */
export const agentRepoRequestSchema = z.object({
  url: z.string(),
  /** The directory of the clone. */
  path: z.string(),
  /** A branch, a tag or a commit; null: the default branch. */
  ref: z.string().nullable(),
  /** Git sends this password, the placeholder of a secret. null: a public repository. */
  password: z.string().nullable(),
  /** true: fetches, and moves a clean clone forward. false: a clone that exists stays as it is. */
  update: z.boolean(),
  /** The variables of the box. */
  env: z.record(z.string(), z.string()),
})
export type AgentRepoRequest = z.infer<typeof agentRepoRequestSchema>

export const agentRepoResponseSchema = z.union([
  /** commit: null: the repository is empty. */
  z.object({
    commit: z
      .string()
      .regex(/^[0-9a-f]{40,64}$/)
      .nullable(),
    /** Whether the clone existed and was not updated. */
    isKept: z.boolean(),
  }),
  z.object({ error: z.string().max(4096) }),
])
export type AgentRepoResponse = z.infer<typeof agentRepoResponseSchema>
