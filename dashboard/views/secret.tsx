// A secret that the coordinator shows only once.
import { Command } from './command.tsx'

export type SecretProps = { title: string; text: string; hint: string; onHide(): void }

export function Secret({ title, text, hint, onHide }: SecretProps) {
  return (
    <section class="next-steps" aria-label={title}>
      <h2>{title}</h2>
      <p role="status">{hint}</p>
      <p>
        <Command text={text} />
      </p>
      <p>
        <button type="button" onClick={onHide}>
          Hide
        </button>
      </p>
    </section>
  )
}
