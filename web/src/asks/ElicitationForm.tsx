import { useState } from "react";
import { isObject, type JsonObject, text } from "../state/contentBlocks";
import { lookup } from "../state/lookup";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { Marked } from "../ui/Marked";
import { hasMarks } from "../ui/marks";
import type { FormProps } from "./AskCard";
import styles from "./asks.module.css";

const words = catalogue.asks;

interface Field {
  name: string;
  title: string;
  description: string;
  type: string;
  choices: string[];
  required: boolean;
  /** What it has before a person writes into it. */
  given: unknown;
}

/** The fields of the form that an MCP server wants filled in. */
export function fieldsOf(schema: unknown): Field[] {
  if (!isObject(schema) || !isObject(schema.properties)) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).map(([name, raw]) => {
    const property = isObject(raw) ? raw : {};
    const type = text(property.type) || "string";
    return {
      name,
      title: text(property.title) || name,
      description: text(property.description),
      type,
      choices: Array.isArray(property.enum) ? property.enum.map(text) : [],
      required: required.includes(name),
      given: property.default ?? (type === "boolean" ? false : undefined),
    };
  });
}

/** Whether a field does not show all of the text that it begins with. */
function isLong(given: unknown): boolean {
  return text(given).length > 30 || hasMarks(text(given));
}

/** An MCP server's form. */
export function ElicitationForm({ opened, busy, answer }: FormProps) {
  const request = isObject(opened.request) ? opened.request : {};
  const fields = fieldsOf(request.requested_schema ?? request.requestedSchema);
  const [values, setValues] = useState<JsonObject>(() =>
    Object.fromEntries(
      fields.filter((one) => one.given !== undefined).map((one) => [one.name, one.given]),
    ),
  );
  const complete = fields.every((one) => !one.required || lookup(values, one.name) !== undefined);
  const settle = (action: "accept" | "decline" | "cancel"): void =>
    answer(
      action === "accept"
        ? { answer: "elicitation", action, content: values }
        : { answer: "elicitation", action },
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        settle("accept");
      }}
    >
      <p>
        <strong>
          <Marked text={opened.tool} code />
        </strong>
        : <Marked text={text(request.message) || opened.title} />
      </p>
      {text(request.url) && (
        <p className={css.texts.muted}>
          {words.openPage} <Marked text={text(request.url)} code />
        </p>
      )}
      {fields.map((one) => (
        <label key={one.name} className={css.field.field}>
          <span>
            <Marked text={one.title} />
            {one.required && " *"}{" "}
            {one.description && (
              <span className={css.texts.muted}>
                <Marked text={one.description} />
              </span>
            )}
            {isLong(one.given) && (
              <span className={css.texts.muted}>
                {" "}
                {words.default} <Marked text={text(one.given)} code />
              </span>
            )}
          </span>
          <Input
            field={one}
            value={lookup(values, one.name)}
            onChange={(value) => setValues({ ...values, [one.name]: value })}
          />
        </label>
      ))}
      <div className={`${css.layout.buttons} ${styles.buttons}`}>
        <button
          type="submit"
          className={css.button.primary}
          data-primary=""
          disabled={busy || !complete}
        >
          {words.send}
        </button>
        <button type="button" disabled={busy} onClick={() => settle("decline")}>
          {words.decline}
        </button>
        <button type="button" disabled={busy} onClick={() => settle("cancel")}>
          {catalogue.common.cancel}
        </button>
      </div>
    </form>
  );
}

function Input(props: { field: Field; value: unknown; onChange: (value: unknown) => void }) {
  const { field } = props;
  if (field.type === "boolean") {
    return (
      <input
        type="checkbox"
        checked={props.value === true}
        onChange={(event) => props.onChange(event.target.checked)}
      />
    );
  }
  if (field.choices.length) {
    return (
      <select
        value={text(props.value)}
        onChange={(event) => props.onChange(event.target.value || undefined)}
      >
        <option value="">–</option>
        {field.choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    );
  }
  const numeric = field.type === "number" || field.type === "integer";
  return (
    <input
      type={numeric ? "number" : "text"}
      value={props.value === undefined ? "" : String(props.value)}
      onChange={(event) => {
        const given = event.target.value;
        props.onChange(given === "" ? undefined : numeric ? Number(given) : given);
      }}
    />
  );
}
