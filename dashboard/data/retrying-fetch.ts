// The requests of this tab: they are repeated when the coordinator refuses them because there are too many.
import { createRetryingFetch } from '../api/rate-limit.ts'
import { wait } from './wait.ts'

export const retryingFetch = createRetryingFetch({
  fetch: (input, init) => fetch(input, init),
  wait,
  random: Math.random,
})
