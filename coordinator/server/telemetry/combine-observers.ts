// Combines the observers of metrics with those of traces.
import type { StepObserver } from '../../boxes/lifecycle/step-observer.ts'
import type { Observers } from './observers.ts'

type Wrapper<Subject, Result> = (subject: Subject, run: () => Result) => Result

const nest =
  <Subject, Result>(
    outer: Wrapper<Subject, Result>,
    inner: Wrapper<Subject, Result>,
  ): Wrapper<Subject, Result> =>
  (subject, run) =>
    outer(subject, () => inner(subject, run))

const combineSteps = (a: StepObserver, b: StepObserver): StepObserver => ({
  observe: nest(a.observe, b.observe),
  onFailure(...failure) {
    a.onFailure(...failure)
    b.onFailure(...failure)
  },
  onJobComplete(...job) {
    a.onJobComplete(...job)
    b.onJobComplete(...job)
  },
})

/** @param spans those observers that traces have too */
export function combineObservers(
  metrics: Required<Observers>,
  spans: Required<Pick<Observers, 'requests' | 'tunnelRequests' | 'steps'>>,
): Observers {
  return {
    ...metrics,
    requests: nest(metrics.requests, spans.requests),
    tunnelRequests: nest(metrics.tunnelRequests, spans.tunnelRequests),
    steps: combineSteps(metrics.steps, spans.steps),
  }
}
