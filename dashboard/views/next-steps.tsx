// What to type after a box was created.
import { boxes } from '../data/live.ts'
import { formatBoxPath } from '../data/routes.ts'
import { Command } from './command.tsx'

export function NextSteps({ name }: { name: string }) {
  const isRunning = [...(boxes.value?.values() ?? [])].some(
    ({ hostname, observedState }) => hostname === name && observedState === 'running',
  )
  return (
    <section class="next-steps" aria-label={`Next steps with ${name}`}>
      <p role="status">
        The box <a href={formatBoxPath(name)}>{name}</a> {isRunning ? 'is running' : 'is being created'}. In a{' '}
        <a href={formatBoxPath(name, 'terminals')}>terminal of this page</a>, or in one of yours:
      </p>
      <ul>
        {[`box ssh ${name}`, `box exec ${name} -- uname -a`, `box cp file.txt ${name}:`].map((text) => (
          <li key={text}>
            <Command text={text} />
          </li>
        ))}
      </ul>
    </section>
  )
}
