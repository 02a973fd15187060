// GET /share/certificate: whether a proxy should obtain a certificate for a host name, before the name has one.
import { ApiError } from '../../shared/errors.ts'
import type { PublicRoute } from '../http/public-routes.ts'
import type { PortShares } from './types.ts'

/**
 * Responds with 200 for the host name of a link that is served, as the query `domain`, and else with 404. It says no more than
 * a request to the name itself does. The form is that of `on_demand_tls` of Caddy: without the question, anyone could
 * have certificates obtained for names of their choice, until the authority refuses more.
 */
export const createCertificateRoute = ({ base, find }: Pick<PortShares, 'base' | 'find'>): PublicRoute => ({
  path: '/share/certificate',
  async handler({ url }, reply) {
    reply.header('cache-control', 'no-store')
    const domain = new URLSearchParams(url.split('?')[1] ?? '').get('domain')
    if (!domain) throw new ApiError('bad_request', 'The query must have the host name as domain.')
    const slug = base.parseHost(domain)
    if (slug === undefined || (await find(slug)) === undefined)
      throw new ApiError('not_found', 'No link has this host name.')
    return { domain }
  },
})
