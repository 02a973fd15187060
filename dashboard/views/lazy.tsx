// A page in a file of its own, which is loaded when it is first shown.

import { useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useLayoutEffect } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { navigations } from '../data/navigation.ts'
import { focusHeading } from './focus-heading.ts'
import { Problem } from './problem.tsx'

/** @param load imports the file. A failed import is tried again when the page is shown again */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null
  return function Lazy(props: Props) {
    const error = useSignal<BoxwoodError | null>(null)
    const isLoaded = useSignal(loaded !== null)
    useEffect(() => {
      if (loaded !== null) return
      load().then(
        (page) => {
          loaded = page
          isLoaded.value = true
        },
        (reason) => {
          error.value = toBoxwoodError(reason)
        },
      )
    }, [])
    const isShown = isLoaded.value
    useLayoutEffect(() => {
      // A page of its own had no heading when the navigation moved the focus.
      if (isShown && navigations.value > 1 && document.activeElement === document.body) focusHeading()
    }, [isShown])
    if (isShown && loaded !== null) {
      const Page = loaded
      return <Page {...props} />
    }
    if (error.value === null) return <p>Loading the page.</p>
    return (
      <>
        <Problem error={error.value} />
        <p>The coordinator may have a newer version of this page: load the document again.</p>
      </>
    )
  }
}
