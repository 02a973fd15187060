// A part of a page with a title, and a link to more of the same.
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

export type CardProps = {
  title: string
  href?: string
  /** The text of the link. */
  link?: string
  children: ComponentChildren
}

export function Card({ title, href, link, children }: CardProps) {
  const id = useId()
  return (
    <section class="card" aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>{title}</h2>
        {href !== undefined && <a href={href}>{link}</a>}
      </div>
      {children}
    </section>
  )
}
