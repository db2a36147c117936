/** Forms that change a label: name, language, meaning, parent, other names, merge. */

import { type FormEvent, type ReactNode, useId, useState } from "react";
import { labelApi } from "../api/labels";
import type { LabelDetails, LabelEditRequest } from "../api/types";
import { api } from "../api/client";
import { formatCount } from "../base/format";
import { LabelInput } from "../base/label-input";
import { updateSearchParams } from "../base/router";
import { Icon } from "../base/components";
import { applyChange } from "./label-changes";
import { formatLanguage } from "./messages";

/** Return the initial values of the form; a change of them makes a new form, other changes keep what is typed. */
export function getEditableValues({ name, language, wordnet, parent }: LabelDetails): { name: string; language: string; wordnet: string; parent: string } {
  return { name, language, wordnet, parent: parent ?? "" };
}

export function EditForm({ label }: { label: LabelDetails }): ReactNode {
  const initial = getEditableValues(label);
  const [values, setValues] = useState(initial);
  const [problem, setProblem] = useState<string | null>(null);
  const edits = Object.fromEntries(
    Object.entries(values).filter(([key, value]) => value.trim() !== initial[key as keyof typeof initial]),
  ) as LabelEditRequest;
  const isUnchanged = Object.keys(edits).length === 0;
  const updateValues = (changes: Partial<typeof initial>): void => setValues((current) => ({ ...current, ...changes }));
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setProblem(await applyChange(labelApi.edit(label.id, edits), `Changed “${label.name}”`));
  };
  return (
    <form className="card label-edit" aria-label="Edit" onSubmit={(event) => void save(event)}>
      <h3>Edit</h3>
      <TextField name="Name" value={values.name} maxLength={500} onChange={(name) => updateValues({ name })} />
      <div className="pair">
        <TextField name="Language, such as en" value={values.language} maxLength={35} onChange={(language) => updateValues({ language })} />
        <TextField name="WordNet id" value={values.wordnet} maxLength={20} onChange={(wordnet) => updateValues({ wordnet })} />
      </div>
      <div className="field">
        <span>Below</span>
        <LabelInput
          name="Below which label"
          placeholder="Below none"
          value={values.parent}
          onChange={(parent) => updateValues({ parent })}
          onPick={(parent) => updateValues({ parent })}
        />
      </div>
      <Problem text={problem} />
      <p className="actions">
        <button type="button" disabled={isUnchanged} onClick={() => setValues(initial)}>
          Reset
        </button>
        <button type="submit" className="primary" disabled={isUnchanged || !values.name.trim()}>
          Save
        </button>
      </p>
      <p className="quiet">The old name stays another name of it.</p>
    </form>
  );
}

export function MergeForm({ label }: { label: LabelDetails }): ReactNode {
  const [targetName, setTargetName] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const merge = async (): Promise<void> => {
    const name = targetName.trim();
    const completions = (await api.completeLabels(name, 20)).labels;
    const target = completions.find((hit) => hit.name === name) ?? completions.find((hit) => hit.synonym === name);
    if (!target) {
      setProblem(`There is no label “${name}”; choose one of the list.`);
      return;
    }
    const changeProblem = await applyChange(labelApi.merge([label.id], target.id), `Merged “${label.name}” into “${target.name}”`, () =>
      updateSearchParams({ label: target.id }, { replace: true }),
    );
    setProblem(changeProblem);
  };
  return (
    <section className="card label-merge" aria-label="Merge">
      <h3>Merge into another</h3>
      <div className="pair">
        <LabelInput
          name="Merge into"
          placeholder="The label that stays"
          value={targetName}
          onChange={setTargetName}
          onPick={setTargetName}
          allowsNew
        />
        <button
          type="button"
          disabled={!targetName.trim()}
          onClick={() => void merge().catch((error: unknown) => setProblem((error as Error).message))}
        >
          Merge
        </button>
      </div>
      <Problem text={problem} />
      <p className="quiet">
        Its tags ({formatCount(label.items, "picture")}) and names go to the other label; “{label.name}” finds that one from
        then on.
      </p>
    </section>
  );
}

/** Other names, by language. */
export function LabelNames({ label, canWrite }: { label: LabelDetails; canWrite: boolean }): ReactNode {
  const [name, setName] = useState("");
  const [language, setLanguage] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const languages = [...new Set(label.names.map((labelName) => labelName.language))];
  const save = async (edits: LabelEditRequest, description: string): Promise<void> => {
    setProblem(await applyChange(labelApi.edit(label.id, edits), description));
  };
  return (
    <section className="card" aria-label="Other names">
      <h3>Other names</h3>
      {languages.length === 0 && <p className="quiet">None.</p>}
      {languages.map((nameLanguage) => (
        <div key={nameLanguage} className="language-names">
          <small>{formatLanguage(nameLanguage) || "no language"}</small>
          <ul className="chips">
            {label.names
              .filter((labelName) => labelName.language === nameLanguage)
              .map((labelName) => (
                <li key={labelName.name} className="chip static">
                  {labelName.name}
                  {canWrite && (
                    <button
                      type="button"
                      className="plain"
                      aria-label={`No longer call it ${labelName.name}`}
                      onClick={() => void save({ remove: [labelName.name] }, `“${label.name}” is no longer called “${labelName.name}”`)}
                    >
                      <Icon name="close" />
                    </button>
                  )}
                </li>
              ))}
          </ul>
        </div>
      ))}
      {canWrite && (
        <form
          className="add-name"
          onSubmit={(event) => {
            event.preventDefault();
            void save({ add: [{ name, language }] }, `“${label.name}” is also called “${name.trim()}”`);
          }}
        >
          <TextField name="Another name" value={name} maxLength={500} onChange={setName} />
          <TextField name="Language" value={language} maxLength={35} onChange={setLanguage} />
          <button type="submit" disabled={!name.trim()}>
            Add
          </button>
        </form>
      )}
      <Problem text={problem} />
    </section>
  );
}

interface TextFieldProps {
  name: string;
  value: string;
  maxLength: number;
  onChange: (value: string) => void;
}

function TextField({ name, value, maxLength, onChange }: TextFieldProps): ReactNode {
  const id = useId();
  return (
    <label className="field" htmlFor={id}>
      <span>{name}</span>
      <input
        id={id}
        type="text"
        value={value}
        maxLength={maxLength}
        autoComplete="off"
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

function Problem({ text }: { text: string | null }): ReactNode {
  return text && <p className="refused" role="alert">{text}</p>;
}
