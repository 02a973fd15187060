// The spans: one per request, with child spans for requests to agents and for steps of lifecycle jobs. Attributes contain no
// paths, names, commands or keys.

import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { VERSION } from '../../../../shared/version.ts'
import type { TunnelRequestObserver } from '../../../agents/tunnel/types.ts'
import type { StepObserver } from '../../../boxes/lifecycle/step-observer.ts'
import { getFinalStatus, type RequestObserver } from '../../../http/observe-requests.ts'
import { getMethodLabel, getTunnelRoute } from '../labels.ts'
import type { Observers } from '../observers.ts'

/** Records the name of the error and omits its message, which may contain paths. */
function setFailed(span: Span, error: unknown): void {
  if (error instanceof Error) span.setAttribute('error.type', error.name)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

export function createSpanObservers(): Required<Pick<Observers, 'requests' | 'tunnelRequests' | 'steps'>> {
  const tracer = trace.getTracer('boxwood', VERSION)

  const requests: RequestObserver = (observed, serve) => {
    const { request, response, host } = observed
    const method = getMethodLabel(request.method)
    const parent = propagation.extract(ROOT_CONTEXT, request.headers)
    const attributes = { 'http.request.method': method, 'boxwood.host': host }
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parent)
    response.once('close', () => {
      const { route } = observed
      const status = getFinalStatus(response)
      if (route !== undefined) span.updateName(`${method} ${route}`).setAttribute('http.route', route)
      span.setAttribute('http.response.status_code', status)
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    })
    context.with(trace.setSpan(parent, span), serve)
  }

  const tunnelRequests: TunnelRequestObserver = (request, send) => {
    const { method } = request
    const route = getTunnelRoute(request)
    const attributes = { 'http.request.method': method, 'boxwood.agent.route': route }
    return tracer.startActiveSpan(
      `agent ${method} ${route}`,
      { kind: SpanKind.CLIENT, attributes },
      async (span) => {
        try {
          const response = await send()
          span.setAttribute('http.response.status_code', response.status)
          return response
        } catch (error) {
          setFailed(span, error)
          throw error
        } finally {
          span.end()
        }
      },
    )
  }

  const steps: StepObserver = {
    observe({ op, step, attempt, box }, run) {
      const attributes = {
        'boxwood.box.id': box.id,
        'boxwood.job.op': op,
        'boxwood.job.step': step,
        'boxwood.job.attempt': attempt + 1,
      }
      return tracer.startActiveSpan(`${op}: ${step}`, { attributes }, async (span) => {
        try {
          return await run()
        } catch (error) {
          // An interrupted step does not reject with an Error.
          if (error instanceof Error) setFailed(span, error)
          throw error
        } finally {
          span.end()
        }
      })
    },
    onFailure: () => undefined,
    onJobComplete: () => undefined,
  }

  return { requests, tunnelRequests, steps }
}
