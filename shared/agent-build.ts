// A build of the agent as the coordinator offers it to machines, and the text that the coordinator signs.
import * as z from 'zod'

/** Node's notation of a platform. */
const platformSchema = z.string().regex(/^linux-[a-z0-9]{1,16}$/)
/** The first 16 hexadecimal digits of a hash of the content. */
const buildIdSchema = z.string().regex(/^[0-9a-f]{16}$/)
export const MAX_ARCHIVE_BYTES = 512 * 1024 * 1024

/** The body of `POST /upgrade` on the agent. */
export const agentBuildSchema = z.object({
  platform: platformSchema,
  version: z.string().regex(/^[\x21-\x7e]{1,64}$/),
  buildId: buildIdSchema,
  /** The archive: its bytes and its SHA-256 in hex. */
  size: z.int().min(1).max(MAX_ARCHIVE_BYTES),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Ed25519 over toSignedText(), in base64. */
  signature: z.string().regex(/^[A-Za-z0-9+/]{86}==$/),
})
export type AgentBuild = z.infer<typeof agentBuildSchema>

/**
 * The versions of terminal hosts that an agent of this build can use: PROTOCOL_VERSION in agent/exec/native/terminal.c, now
 * and in earlier builds.
 */
export const TERMINAL_HOST_VERSIONS: readonly number[] = [1]

/** The body of `POST /restart` on the agent. */
export const restartRequestSchema = z.object({
  /** An installed build, which starts next. */
  buildId: buildIdSchema.optional(),
  /** TERMINAL_HOST_VERSIONS of the build that starts next. An earlier coordinator, which does not send them, may start any build. */
  terminalHostVersions: z.array(z.int()).max(100).default([]),
})

export const toSignedText = ({ platform, version, buildId, size, sha256 }: Omit<AgentBuild, 'signature'>) =>
  `boxwood-agent\n${platform}\n${version}\n${buildId}\n${size}\n${sha256}\n`

/** The path of the archive on the coordinator. */
export const getArchivePath = ({ platform, buildId }: Pick<AgentBuild, 'platform' | 'buildId'>): string =>
  `/agent/bundles/${platform}-${buildId}.tar.gz`
