// Limits of the requests of a box to hosts of secrets: each takes time and memory of the coordinator.
import type { Clock } from '../../../shared/clock.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import type { BrokerConnection, BrokerConnections } from './broker-connections.ts'
import { BrokerError } from './broker-error.ts'

/** Requests of a box. */
export const REQUEST_RATE = { capacity: 300, perSecond: 100 }
/** Requests without a complete response, WebSockets included. */
export const MAX_IN_FLIGHT = { perHost: 200, perBox: 256 }

export type RequestLimiter = {
  /** Counts a request, which the connection has counted as one in flight. null: it is admitted. */
  check(connection: BrokerConnection): BrokerError | null
}

export function createRequestLimiter(
  clock: Clock,
  connections: Pick<BrokerConnections, 'countRequests'>,
): RequestLimiter {
  const rates = createTokenBuckets(clock, REQUEST_RATE)
  return {
    check({ boxId, host }) {
      if (connections.countRequests(boxId, host) > MAX_IN_FLIGHT.perHost)
        return createLimitError(
          `The box has ${MAX_IN_FLIGHT.perHost} requests to ${host} that are not complete`,
        )
      if (connections.countRequests(boxId) > MAX_IN_FLIGHT.perBox)
        return createLimitError(
          `The box has ${MAX_IN_FLIGHT.perBox} requests to hosts of secrets that are not complete`,
        )
      if (rates.take(boxId) > 0)
        return createLimitError(
          `The box has sent more than ${REQUEST_RATE.perSecond} requests per second to hosts of secrets`,
        )
      return null
    },
  }
}

const createLimitError = (reason: string): BrokerError =>
  new BrokerError('too_many_requests', `${reason}, the most that are allowed. Try again later.`)
