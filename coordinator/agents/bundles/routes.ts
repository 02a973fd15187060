// The routes from which a machine installs its agent: GET /install.sh and GET /agent/bundles/{archive}. They need no key.
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { FastifyRequest } from 'fastify'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { PublicRoute } from '../../http/public-routes.ts'
import type { HttpSettings } from '../../http/settings.ts'
import type { AgentBundle, AgentBundles } from './agent-bundles.ts'
import { renderInstallScript } from './install-script.ts'

const INSTALL_SCRIPT_PATH = '/install.sh'
/** Matches the paths that getArchivePath() returns. */
const BUNDLE_PATH = '/agent/bundles/:file'

export type BundleRoutesOptions = {
  projectRoot: string
  agentBundles: AgentBundles
  clock: Clock
  config: Pick<HttpSettings, 'agentUrl' | 'publicUrl'>
  urls: { agents: string }
}

const YEAR_SECONDS = 31_536_000

export function bundleRoutes(options: BundleRoutesOptions): PublicRoute[] {
  const { projectRoot, agentBundles, clock } = options

  async function getBundles(): Promise<AgentBundle[]> {
    const bundles: AgentBundle[] = []
    for (const platform of agentBundles.platforms()) {
      const bundle = await agentBundles.get(platform)
      if (bundle !== null) bundles.push(bundle)
    }
    return bundles
  }

  return [
    {
      path: INSTALL_SCRIPT_PATH,
      async handler(request, reply) {
        const template = await readFile(join(projectRoot, 'install/bootstrap/install.sh'), 'utf8')
        const script = renderInstallScript(template, {
          coordinatorUrl: getCoordinatorUrl(request, options),
          publicKey: await agentBundles.publicKey(),
          now: clock.now(),
          bundles: await getBundles(),
        })
        return reply
          .headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
          .type('text/plain; charset=utf-8')
          .send(script)
      },
    },
    {
      path: BUNDLE_PATH,
      async handler(request, reply) {
        const { file } = request.params as { file: string }
        const platform = agentBundles.platforms().find((name) => file.startsWith(`${name}-`))
        const bundle = platform === undefined ? null : await agentBundles.get(platform)
        if (bundle === null || file !== basename(bundle.path))
          throw new ApiError(
            'not_found',
            'This coordinator does not have this agent bundle. Download install.sh from the coordinator again.',
          )
        // Streamed from the disk, with ranges. The bytes under a name never change.
        return reply
          .header('x-content-type-options', 'nosniff')
          .type('application/gzip')
          .sendFile(file, agentBundles.dir, { immutable: true, maxAge: YEAR_SECONDS * 1000 })
      },
    },
  ]
}

const HOST = /^([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i

/** The configured URL; without one, the address with which the client has reached this coordinator. */
function getCoordinatorUrl(
  { protocol, host }: FastifyRequest,
  { config, urls }: Pick<BundleRoutesOptions, 'config' | 'urls'>,
): string {
  const configured = config.agentUrl ?? config.publicUrl
  if (configured !== null) return configured
  return HOST.test(host) && /^https?$/.test(protocol) ? `${protocol}://${host}` : urls.agents
}
